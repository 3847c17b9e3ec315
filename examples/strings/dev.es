Mueve tu perfil
Esta página se ha abierto.
Haz clic aquí para compartir la carpeta.
¿Quieres copiar esta página?
No se puede imprimir esta página: {0}
La carpeta se ha compartido.
No se puede cerrar la carpeta: {0}
Imprime el último mensaje
La ventana aún no se ha copiado (%d de %d).
Mueve esta página
Guarda el documento
La ventana se ha guardado.
¿Quieres guardar el archivo?
No se puede abrir la ventana: {0}
Abre la ventana
El último mensaje se ha compartido.
La imagen seleccionada se ha compartido.
No se puede eliminar el archivo: {0}
No se puede cerrar el documento: {0}
No se puede copiar la imagen seleccionada: {0}
La ventana aún no se ha cerrado (%d de %d).
El archivo se ha movido.
Esta página aún no se ha guardado (%d de %d).
Cierra la carpeta
Haz clic aquí para abrir el último mensaje.
Haz clic aquí para copiar esta página.
Haz clic aquí para abrir el archivo.
Cierra tu perfil
La imagen seleccionada aún no se ha compartido (%d de %d).
La ventana aún no se ha movido (%d de %d).
Haz clic aquí para guardar la ventana.
El documento se ha movido.
No se puede eliminar la ventana: {0}
No se puede cerrar esta página: {0}
El archivo aún no se ha impreso (%d de %d).
No se puede mover el documento: {0}
La carpeta se ha abierto.
Haz clic aquí para compartir la imagen seleccionada.
Haz clic aquí para imprimir tu perfil.
El último mensaje aún no se ha cerrado (%d de %d).
