# An image for executors and drivers on Kubernetes. It has not been built or run by the tests of this project.
# Build it in a checkout: docker build -f docs/spark.Dockerfile -t kafkalog-spark .
FROM apache/spark:4.0.1-scala2.13-java17-python3-ubuntu
USER root
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3.11-venv python3.11-dev gcc \
    && rm -rf /var/lib/apt/lists/*
COPY . /src
# The image is of Ubuntu 22.04, whose Python 3.10 is too old. The virtual environment has kafkalog with its kernel, and no
# second Spark.
RUN python3.11 -m venv /opt/kafkalog \
    && /opt/kafkalog/bin/pip install --no-cache-dir '/src[fast,remote,spark-provided]' \
    && rm -rf /src
ENV PYSPARK_PYTHON=/opt/kafkalog/bin/python PYSPARK_DRIVER_PYTHON=/opt/kafkalog/bin/python
USER spark
