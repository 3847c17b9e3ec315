//! Tables in and out, by the Arrow `PyCapsule` protocol.

use crate::call::wrong;
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, Float64Array, Int64Array, RecordBatch,
    RecordBatchIterator, StringArray, cast::AsArray, types as arrow,
};
use arrow_schema::{DataType, Field, Schema};
use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::{
    prelude::*,
    types::{PyCapsule, PyDict, PyList, PyString},
};
use pyo3_arrow::{PyRecordBatchReader, PyTable};
use std::sync::Arc;

/// Returns the columns of a table as `NumPy` arrays of numbers or lists of strings; other columns as `None`.
#[pyfunction]
pub(crate) fn columns_of(py: Python<'_>, table: PyTable) -> PyResult<Bound<'_, PyDict>> {
    let (batches, schema) = table.into_inner();
    let out = PyDict::new(py);
    for (index, field) in schema.fields().iter().enumerate() {
        let parts: Vec<&ArrayRef> = batches.iter().map(|b| b.column(index)).collect();
        if out.contains(field.name())? {
            return Err(wrong(format!("two columns of the frame are named {}", field.name())));
        }
        out.set_item(field.name(), column(py, field.data_type(), &parts)?)?;
    }
    Ok(out)
}

/// Values of one column, which is divided into parts.
fn column<'py>(py: Python<'py>, kind: &DataType, parts: &[&ArrayRef]) -> PyResult<Bound<'py, PyAny>> {
    fn numbers<T: ArrowPrimitiveType>(parts: &[&ArrayRef], to: impl Fn(T::Native) -> f64) -> Vec<f64> {
        let all = parts.iter().flat_map(|p| p.as_primitive::<T>().iter());
        all.map(|v| v.map_or(f64::NAN, &to)).collect()
    }
    fn whole<T: ArrowPrimitiveType<Native: TryInto<i64>>>(parts: &[&ArrayRef]) -> Option<Vec<i64>> {
        parts.iter().flat_map(|p| p.as_primitive::<T>().iter()).map(|v| v?.try_into().ok()).collect()
    }
    macro_rules! integers {
        ($kind:ty) => {
            match whole::<$kind>(parts) {
                Some(values) => Ok(values.into_pyarray(py).into_any()),
                None => Ok(numbers::<$kind>(parts, |x| x as f64).into_pyarray(py).into_any()),
            }
        };
    }
    let strings = |values: &mut dyn Iterator<Item = Option<&str>>| -> PyResult<Bound<'py, PyAny>> {
        let list = PyList::empty(py);
        for value in values {
            match value {
                Some(text) => list.append(PyString::new(py, text))?,
                None => list.append(py.None())?,
            }
        }
        Ok(list.into_any())
    };
    match kind {
        DataType::Float64 => Ok(numbers::<arrow::Float64Type>(parts, |x| x).into_pyarray(py).into_any()),
        DataType::Float32 => Ok(numbers::<arrow::Float32Type>(parts, f64::from).into_pyarray(py).into_any()),
        DataType::Int8 => integers!(arrow::Int8Type),
        DataType::Int16 => integers!(arrow::Int16Type),
        DataType::Int32 => integers!(arrow::Int32Type),
        DataType::Int64 => integers!(arrow::Int64Type),
        DataType::UInt8 => integers!(arrow::UInt8Type),
        DataType::UInt16 => integers!(arrow::UInt16Type),
        DataType::UInt32 => integers!(arrow::UInt32Type),
        DataType::UInt64 if whole::<arrow::UInt64Type>(parts).is_none() => {
            // Hashes as ids: rounded to floating-point numbers, different ones could become equal.
            let list = PyList::empty(py);
            for value in parts.iter().flat_map(|p| p.as_primitive::<arrow::UInt64Type>().iter()) {
                list.append(value)?;
            }
            Ok(list.into_any())
        }
        DataType::UInt64 => integers!(arrow::UInt64Type),
        DataType::Boolean => {
            let bits = parts.iter().flat_map(|p| p.as_boolean().iter());
            let values: Vec<f64> = bits.map(|b| b.map_or(f64::NAN, |b| f64::from(u8::from(b)))).collect();
            Ok(values.into_pyarray(py).into_any())
        }
        DataType::Utf8 => strings(&mut parts.iter().flat_map(|p| p.as_string::<i32>().iter())),
        DataType::LargeUtf8 => strings(&mut parts.iter().flat_map(|p| p.as_string::<i64>().iter())),
        DataType::Utf8View => strings(&mut parts.iter().flat_map(|p| p.as_string_view().iter())),
        DataType::Dictionary(_, values) => {
            let list = PyList::empty(py);
            for part in parts {
                let part = part.as_any_dictionary();
                let values = column(py, values, &[part.values()])?;
                let keys = part.normalized_keys();
                for (i, key) in keys.into_iter().enumerate() {
                    if part.is_null(i) {
                        list.append(py.None())?;
                    } else {
                        list.append(values.get_item(key)?)?;
                    }
                }
            }
            Ok(list.into_any())
        }
        _ => Ok(py.None().into_bound(py)),
    }
}

/// Returns a table of columns as an Arrow stream. Columns are `NumPy` arrays of `float64` or `int64`, or lists of strings or
/// `None`.
#[pyfunction]
pub(crate) fn stream_of<'py>(
    py: Python<'py>,
    columns: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let mut fields = Vec::new();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for (name, values) in columns {
        let array: ArrayRef = if let Ok(numbers) = values.extract::<PyReadonlyArray1<'_, f64>>() {
            Arc::new(Float64Array::from_iter_values(numbers.as_array().iter().copied()))
        } else if let Ok(numbers) = values.extract::<PyReadonlyArray1<'_, i64>>() {
            Arc::new(Int64Array::from_iter_values(numbers.as_array().iter().copied()))
        } else if let Ok(bits) = values.extract::<Vec<bool>>() {
            Arc::new(BooleanArray::from(bits))
        } else if let Ok(numbers) = values.extract::<Vec<Option<f64>>>() {
            Arc::new(Float64Array::from(numbers))
        } else {
            let texts: Vec<Option<String>> = values.extract()?;
            Arc::new(StringArray::from(texts))
        };
        fields.push(Field::new(name.extract::<String>()?, array.data_type().clone(), true));
        arrays.push(array);
    }
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(schema.clone(), arrays).map_err(|e| wrong(e.to_string()))?;
    let reader = RecordBatchIterator::new([Ok(batch)], schema);
    PyRecordBatchReader::new(Box::new(reader))
        .into_pyobject(py)?
        .call_method0("__arrow_c_stream__")?
        .cast_into::<PyCapsule>()
        .map_err(PyErr::from)
}
