import java.io.File;
import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.FileLogInputStream.FileChannelRecordBatch;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** Prints the records of a metadata log or a snapshot as kafka-dump-log does with --cluster-metadata-decoder. */
public class ReadMetadata {
    public static void main(String[] arguments) throws Exception {
        for (String name : arguments) {
            try (FileRecords records = FileRecords.open(new File(name), false)) {
                for (FileChannelRecordBatch batch : records.batches()) {
                    batch.ensureValid();
                    for (Record record : batch) {
                        if (batch.isControlBatch()) {
                            System.out.println("{\"type\":\"" + ControlRecordType.parse(record.key()) + "\",\"data\":{}}");
                            continue;
                        }
                        ByteBufferAccessor value = new ByteBufferAccessor(record.value());
                        ApiMessageAndVersion read = MetadataRecordSerde.INSTANCE.read(value, record.valueSize());
                        System.out.println("{\"type\":\"" + read.message().getClass().getSimpleName() + "\",\"data\":"
                            + MetadataJsonConverters.writeJson(read.message(), read.version()) + "}");
                    }
                }
            }
        }
    }
}
