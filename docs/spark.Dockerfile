# An image for executors and drivers on Kubernetes. The image itself has not been built. Its steps were followed by hand: the
# virtual environment made as below, and spark-submit of a Spark that the environment does not have.
# Build it in a checkout: docker build -f docs/spark.Dockerfile -t kafkalog-spark .
FROM apache/spark:4.0.1-scala2.13-java17-python3-ubuntu
USER 0
# hadolint ignore=DL3008
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
# The image's user spark, as a number, which Kubernetes needs to see that it is not root.
USER 185
