"""dump-log: the output of Kafka's kafka-dump-log, byte for byte, and correct output where that tool has a defect.

``dump_log`` takes files and Kafka's flags and yields bytes for standard output, lines for standard error, and findings.
When it emulates a release it repeats that release's defects, up to the point where the tool dies (KafkaStops).
"""
