import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Creates a topic, writes 500 records with a compression, reads them in a group of a protocol, commits, looks at all of it. */
public class RoundTrip {
    public static void main(String[] arguments) throws Exception {
        String topic = "java-" + arguments[1] + "-" + arguments[2];
        Properties common = new Properties();
        common.put("bootstrap.servers", arguments[0]);
        try (Admin admin = Admin.create(common)) {
            admin.createTopics(List.of(new NewTopic(topic, 3, (short) 1))).all().get();
            require(admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size() == 3);
            require(admin.describeCluster().nodes().get().size() == 1);
            ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
            require(admin.describeConfigs(List.of(resource)).all().get().get(resource).get("retention.ms") != null);
        }
        Properties producing = new Properties();
        producing.putAll(common);
        producing.put("compression.type", arguments[1]);
        try (var producer = new KafkaProducer<>(producing, new StringSerializer(), new StringSerializer())) {
            for (int number = 0; number < 500; number++) {
                producer.send(new ProducerRecord<>(topic, "k" + number, "v" + number));
            }
        }
        Properties consuming = new Properties();
        consuming.putAll(common);
        consuming.put("group.id", topic);
        consuming.put("auto.offset.reset", "earliest");
        consuming.put("group.protocol", arguments[2]);
        int found = 0;
        try (var consumer = new KafkaConsumer<>(consuming, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            long end = System.currentTimeMillis() + 30_000;
            while (found < 500 && System.currentTimeMillis() < end) {
                found += consumer.poll(Duration.ofMillis(200)).count();
            }
            consumer.commitSync();
        }
        require(found == 500);
        try (Admin admin = Admin.create(common)) {
            long committed = admin.listConsumerGroupOffsets(topic).partitionsToOffsetAndMetadata().get().values().stream()
                .mapToLong(offset -> offset.offset()).sum();
            require(committed == 500);
            admin.deleteTopics(List.of(topic)).all().get();
        }
        System.out.println("read " + found);
    }

    private static void require(boolean holds) {
        if (!holds) {
            throw new AssertionError("see the line number");
        }
    }
}
