luthier tune perceptron --nbest examples/quickstart/nbest.txt --iterations 3 --ref examples/quickstart/ref.txt --init examples/quickstart/init.txt --run R
