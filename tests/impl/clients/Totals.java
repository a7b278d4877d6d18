import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.Stores;

/** Kafka Streams with exactly_once_v2: the running total of each key's amounts, one record for each amount. */
public class Totals {
    public static void main(String[] given) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", given[0]);
        settings.put("application.id", "totals");
        settings.put("state.dir", given[1]);
        settings.put("replication.factor", given[2]);
        settings.put("processing.guarantee", "exactly_once_v2");
        settings.put("statestore.cache.max.bytes", "0");
        settings.put("commit.interval.ms", "100");
        settings.put("default.key.serde", Serdes.StringSerde.class.getName());
        settings.put("default.value.serde", Serdes.StringSerde.class.getName());
        settings.put("consumer.auto.offset.reset", "earliest");
        settings.put("consumer.session.timeout.ms", "6000");
        settings.put("consumer.heartbeat.interval.ms", "1000");
        settings.put("producer.transaction.timeout.ms", "8000");
        settings.put("request.timeout.ms", "6000");
        settings.put("producer.delivery.timeout.ms", "20000");
        settings.put("reconnect.backoff.max.ms", "500");
        settings.put("metadata.max.age.ms", "2000");
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream("amounts")
                .groupByKey()
                .aggregate(
                        () -> "0",
                        (key, amount, total) -> String.valueOf(Long.parseLong(total) + Long.parseLong(amount)),
                        Materialized.<String, String>as(Stores.inMemoryKeyValueStore("totals-store"))
                                .withKeySerde(Serdes.String())
                                .withValueSerde(Serdes.String()))
                .toStream()
                .to("totals");
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setUncaughtExceptionHandler(error -> StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse.REPLACE_THREAD);
        streams.setStateListener((now, before) -> {
            System.out.println("state " + now);
            System.out.flush();
        });
        streams.start();
        while (System.in.read() >= 0) continue;
        streams.close();
    }
}
