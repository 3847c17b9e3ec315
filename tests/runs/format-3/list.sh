luthier tune mert --nbest examples/quickstart/nbest.txt --ref examples/quickstart/ref.txt --init examples/quickstart/init.txt --run R
