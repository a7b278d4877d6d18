import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Commits and aborts transactions in two partitions, is fenced, and reads what is committed. Prints the epochs it had. */
public class Transactional {
    static final String TOPIC = "java";
    static Properties common = new Properties();

    public static void main(String[] arguments) throws Exception {
        common.put("bootstrap.servers", arguments[0]);
        int rounds = Integer.parseInt(arguments[1]);
        List<String> expected = new ArrayList<>();
        try (Admin admin = Admin.create(common)) {
            admin.createTopics(List.of(new NewTopic(TOPIC, 2, (short) 1))).all().get();
        }
        try (var producer = producer()) {
            producer.initTransactions();
            for (int round = 0; round < rounds; round++) {
                boolean commits = round % 3 != 1;
                producer.beginTransaction();
                for (int number = 0; number < 4; number++) {
                    String value = round + "-" + number;
                    producer.send(new ProducerRecord<>(TOPIC, number % 2, "k", value));
                    if (commits) expected.add(value);
                }
                if (commits) producer.commitTransaction();
                else producer.abortTransaction();
            }
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(TOPIC, 0, "k", "zombie")).get();
            try (var successor = producer()) {
                successor.initTransactions();
                boolean fenced = false;
                try {
                    producer.commitTransaction();
                } catch (ProducerFencedException | org.apache.kafka.common.errors.InvalidProducerEpochException error) {
                    fenced = true;
                }
                require(fenced, "a producer goes on that was fenced");
                successor.beginTransaction();
                successor.send(new ProducerRecord<>(TOPIC, 1, "k", "last"));
                successor.commitTransaction();
                expected.add("last");
            }
        }
        try (Admin admin = Admin.create(common)) {
            var described = admin.describeTransactions(List.of("java-id")).description("java-id").get();
            require(Set.of(TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT).contains(described.state()), described.toString());
            System.out.println("epoch " + described.producerEpoch());
        }
        Collections.sort(expected);
        require(read("read_committed", expected.size()).equals(expected), "other records are committed");
        require(read("read_uncommitted", expected.size() + 1).contains("zombie"), "an aborted record is not there");
    }

    static KafkaProducer<String, String> producer() {
        Properties producing = new Properties();
        producing.putAll(common);
        producing.put("transactional.id", "java-id");
        return new KafkaProducer<>(producing, new StringSerializer(), new StringSerializer());
    }

    static List<String> read(String isolation, int least) {
        Properties consuming = new Properties();
        consuming.putAll(common);
        consuming.put("isolation.level", isolation);
        List<String> found = new ArrayList<>();
        try (var consumer = new KafkaConsumer<>(consuming, new StringDeserializer(), new StringDeserializer())) {
            List<TopicPartition> partitions = List.of(new TopicPartition(TOPIC, 0), new TopicPartition(TOPIC, 1));
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            var ends = consumer.endOffsets(partitions);
            long limit = System.currentTimeMillis() + 30_000;
            while (System.currentTimeMillis() < limit
                    && (found.size() < least || partitions.stream().anyMatch(one -> consumer.position(one) < ends.get(one)))) {
                consumer.poll(Duration.ofMillis(100)).forEach(record -> found.add(record.value()));
            }
        }
        Collections.sort(found);
        return found;
    }

    static void require(boolean holds, String what) {
        if (!holds) throw new AssertionError(what);
    }
}
