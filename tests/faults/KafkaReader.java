import java.io.File;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Iterator;
import java.util.zip.CRC32;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;

/**
 * Reads log files as Kafka's clients and tools do, and goes on with the next file whatever happens.
 *
 *   java -cp "LIBS/*" KafkaReader.java FOLDER
 *
 * Prints, tab-separated, a line for each file of the folder (FILE name), for each batch (BATCH position, size, magic,
 * base offset, last offset, whether its CRC is right), for each record (RECORD offset, timestamp, CRC-32 of key and
 * value), and where reading ended early (FAILED, in a batch's records or between batches, and the exception).
 */
public class KafkaReader {
    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false, StandardCharsets.UTF_8);
        File[] files = new File(arguments[0]).listFiles();
        Arrays.sort(files);
        for (File file : files) {
            out.println("FILE\t" + file.getName());
            try (FileRecords records = FileRecords.open(file, false)) {
                int position = 0;
                for (RecordBatch batch : records.batches()) {
                    boolean isValid;
                    try {
                        isValid = batch.isValid();
                    } catch (Throwable error) {
                        isValid = false;
                    }
                    out.println("BATCH\t" + position + "\t" + batch.sizeInBytes() + "\t" + batch.magic() + "\t"
                        + offsetOr(batch, true) + "\t" + offsetOr(batch, false) + "\t" + isValid);
                    if (isValid)
                        readRecords(batch, out);
                    position += batch.sizeInBytes();
                }
            } catch (Throwable error) {
                out.println("FAILED\tbetween\t" + describe(error));
            }
        }
        out.flush();
    }

    private static String offsetOr(RecordBatch batch, boolean isBase) {
        try {
            return Long.toString(isBase ? batch.baseOffset() : batch.lastOffset());
        } catch (Throwable error) {
            return "?";
        }
    }

    private static void readRecords(RecordBatch batch, PrintStream out) {
        try {
            Iterator<Record> records = batch.iterator();
            while (records.hasNext()) {
                Record record = records.next();
                record.ensureValid();
                CRC32 crc = new CRC32();
                for (ByteBuffer part : new ByteBuffer[] {record.key(), record.value()}) {
                    crc.update(part == null ? 0 : 1);
                    if (part != null)
                        crc.update(part.duplicate());
                }
                out.println("RECORD\t" + record.offset() + "\t" + record.timestamp() + "\t" + crc.getValue());
            }
        } catch (Throwable error) {
            out.println("FAILED\trecords\t" + describe(error));
        }
    }

    private static String describe(Throwable error) {
        return error.getClass().getSimpleName() + ": " + String.valueOf(error.getMessage()).replaceAll("[\\s]+", " ");
    }
}
