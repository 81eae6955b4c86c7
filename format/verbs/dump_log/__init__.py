"""dump-log: what Kafka's own kafka-dump-log prints, to the byte; and the right thing where that tool has a defect.

``dump_log`` takes files and Kafka's flags and gives bytes for standard output, lines for standard error, and findings.
With a release to emulate it repeats that release's defects, to the point where it dies (KafkaStops).
"""

from format.verbs.dump_log.files import dump_log
from format.verbs.dump_log.options import Contents, DumpLogOptions, Release
from format.verbs.dump_log.stops import ErrorLine, KafkaStops

__all__ = ["Contents", "DumpLogOptions", "ErrorLine", "KafkaStops", "Release", "dump_log"]
