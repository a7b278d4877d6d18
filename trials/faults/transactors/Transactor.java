import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.OutOfOrderSequenceException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Transactional clients in threads of one process; trials/faults/transactors/load.py says what they print. */
public class Transactor implements Runnable {
    static final double COMMITS = 0.85;
    static final long IDLE_MS = 4_000, PATIENCE_MS = 90_000;
    static String servers, topic, output;
    static int partitions, accounts;
    static long pauseMs;
    static volatile boolean stopping;

    final String name, mode;
    final Random random;
    int number;
    String transaction;
    KafkaProducer<String, String> producer;
    KafkaConsumer<String, String> consumer;
    long busy, began;

    Transactor(String name, String mode, int seed) {
        this.name = name;
        this.mode = mode;
        this.random = new Random(name.hashCode() * 31L + seed);
    }

    public static void main(String[] given) throws Exception {
        servers = given[0];
        topic = given[1];
        output = given[2];
        partitions = Integer.parseInt(given[3]);
        accounts = Integer.parseInt(given[4]);
        pauseMs = Long.parseLong(given[5]);
        List<Thread> threads = new ArrayList<>();
        for (int place = 7; place < given.length; place++) {
            String[] client = given[place].split("=");
            threads.add(new Thread(new Transactor(client[0], client[1], Integer.parseInt(given[6]))));
        }
        for (Thread thread : threads) thread.start();
        while (System.in.read() >= 0) continue;
        stopping = true;
        for (Thread thread : threads) thread.join();
    }

    static synchronized void say(Object... fields) {
        StringBuilder line = new StringBuilder();
        for (Object field : fields) line.append(line.length() > 0 ? "\t" : "").append(field);
        System.out.println(line.toString().replace('\n', ' '));
        System.out.flush();
    }

    boolean isDone() {
        return stopping && (consumer == null || System.currentTimeMillis() - busy > IDLE_MS);
    }

    @Override
    public void run() {
        if (mode.equals("transform")) subscribe();
        while (!isDone()) {
            try (var made = new KafkaProducer<>(producing(), new StringSerializer(), new StringSerializer())) {
                producer = made;
                patiently(producer::initTransactions);
                if (consumer != null) rewind();
                while (!isDone()) {
                    once();
                    Thread.sleep(pauseMs);
                }
            } catch (KafkaException | InterruptedException error) {
                say("anew", name, error);
                try {
                    Thread.sleep(500);
                } catch (InterruptedException end) {
                    return;
                }
            }
        }
        if (consumer != null) consumer.close();
    }

    Properties producing() {
        Properties made = new Properties();
        made.put("bootstrap.servers", servers);
        made.put("client.id", name);
        made.put("transactional.id", name);
        made.put("transaction.timeout.ms", "20000");
        made.put("max.block.ms", "15000");
        made.put("request.timeout.ms", "5000");
        made.put("delivery.timeout.ms", "30000");
        made.put("linger.ms", "0");
        made.put("reconnect.backoff.max.ms", "500");
        made.put("metadata.max.age.ms", "2000");
        return made;
    }

    /** Calls again while the time is up and nothing is known. */
    static void patiently(Runnable call) {
        long end = System.currentTimeMillis() + PATIENCE_MS;
        while (true) {
            try {
                call.run();
                return;
            } catch (TimeoutException error) {
                if (System.currentTimeMillis() > end) throw error;
            }
        }
    }

    void once() {
        List<ConsumerRecord<String, String>> taken = mode.equals("transform") ? taken() : List.of();
        if (mode.equals("transform") && taken.isEmpty()) return;
        number++;
        transaction = name + "." + number;
        say("begun", transaction);
        began = System.nanoTime();
        boolean asked = false;
        try {
            producer.beginTransaction();
            write(taken);
            if (!taken.isEmpty()) {
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                for (var one : taken) offsets.put(new TopicPartition(one.topic(), one.partition()), new OffsetAndMetadata(one.offset() + 1));
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
            }
            if (mode.equals("transform") || random.nextDouble() < COMMITS) {
                producer.flush();
                asked = true;
                patiently(producer::commitTransaction);
                ended("acknowledged", "");
            } else {
                abort("");
            }
        } catch (ProducerFencedException | InvalidProducerEpochException | OutOfOrderSequenceException
                | AuthorizationException | UnsupportedVersionException error) {
            fail(asked, error);
        } catch (KafkaException error) {
            try {
                abort(error.getClass().getSimpleName());
            } catch (KafkaException | IllegalStateException fatal) {
                fail(asked, error);
            }
        }
    }

    void ended(String kind, String error) {
        say("ended", transaction, kind, (System.nanoTime() - began) / 1_000_000, error);
    }

    void fail(boolean asked, KafkaException error) {
        ended(asked ? "unknown" : "refused", error.getClass().getSimpleName());
        throw error;
    }

    void abort(String error) {
        patiently(producer::abortTransaction);
        ended("refused", error);
        if (mode.equals("transform")) rewind();
    }

    void write(List<ConsumerRecord<String, String>> taken) {
        if (mode.equals("transform")) {
            for (var one : taken) send(one.partition(), transaction + "/" + one.partition() + "-" + one.offset());
        } else if (mode.equals("bank")) {
            int giver = random.nextInt(accounts), taker = (giver + 1 + random.nextInt(accounts - 1)) % accounts;
            int amount = 1 + random.nextInt(100);
            send(giver % partitions, transaction + "|" + giver + "|" + -amount);
            send(taker % partitions, transaction + "|" + taker + "|" + amount);
        } else {
            for (int place = 0, count = 2 + random.nextInt(3); place < count; place++) {
                send(random.nextInt(partitions), transaction + "/" + place);
            }
        }
    }

    void send(int partition, String value) {
        String own = transaction;
        say("sent", own, partition, value);
        producer.send(new ProducerRecord<>(mode.equals("transform") ? output : topic, partition, null, value), (stored, error) -> {
            if (error == null) say("stored", own, partition, value, stored.offset());
        });
    }

    // ---- input

    void subscribe() {
        busy = System.currentTimeMillis();
        Properties made = new Properties();
        made.put("bootstrap.servers", servers);
        made.put("client.id", name);
        made.put("group.id", topic + "-group");
        made.put("isolation.level", "read_committed");
        made.put("enable.auto.commit", "false");
        made.put("auto.offset.reset", "earliest");
        made.put("session.timeout.ms", "6000");
        made.put("heartbeat.interval.ms", "1000");
        made.put("request.timeout.ms", "5000");
        made.put("default.api.timeout.ms", "15000");
        made.put("fetch.max.wait.ms", "100");
        made.put("max.poll.records", "20");
        made.put("metadata.max.age.ms", "2000");
        made.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer.RangeAssignor");
        consumer = new KafkaConsumer<>(made, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(topic));
    }

    List<ConsumerRecord<String, String>> taken() {
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        try {
            consumer.poll(Duration.ofMillis(300)).forEach(found::add);
        } catch (KafkaException error) {
            say("anew", name, error);
        }
        if (!found.isEmpty()) busy = System.currentTimeMillis();
        for (var one : found) say("consumed", name + "." + (number + 1), one.partition(), one.offset(), one.value());
        return found;
    }

    /** Reads again from what is committed, wherever this client is assigned. */
    void rewind() {
        busy = System.currentTimeMillis();
        while (!stopping || System.currentTimeMillis() - busy < 15_000) {
            try {
                var assigned = consumer.assignment();
                var committed = consumer.committed(assigned);
                for (var one : assigned) {
                    var offset = committed.get(one);
                    consumer.seek(one, offset == null ? 0 : offset.offset());
                }
                return;
            } catch (KafkaException | IllegalStateException error) {
                say("anew", name, error);
            }
        }
    }
}
