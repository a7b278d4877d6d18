// Members of groups by Kafka's Java client, in threads of one process; trials/faults/members/load.py says what they print.

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

public class GroupMember implements Runnable, ConsumerRebalanceListener {
    static String servers, topic;
    static long pauseMs, staysMs;
    static volatile boolean staying, stopping;

    final String name, protocol;
    final int number;
    final Random random;
    final TreeSet<Integer> owned = new TreeSet<>();
    long turn;

    GroupMember(String name, String protocol, int number) {
        this.name = name;
        this.protocol = protocol;
        this.number = number;
        this.random = new Random(name.hashCode());
    }

    public static void main(String[] given) throws Exception {
        servers = given[0];
        topic = given[1];
        pauseMs = Long.parseLong(given[3]);
        staysMs = (long) (1000 * Double.parseDouble(given[4]));
        List<Thread> threads = new ArrayList<>();
        for (int place = 5; place < given.length; place++) {
            String[] one = given[place].split("=");
            threads.add(new Thread(new GroupMember(one[0], one[1], Integer.parseInt(one[2]))));
        }
        for (Thread thread : threads) thread.start();
        for (int read = 0; read >= 0 && read != '\n'; read = System.in.read()) continue;
        staying = true;
        while (System.in.read() >= 0) continue;
        stopping = true;
        for (Thread thread : threads) thread.join();
    }

    static synchronized void say(Object... fields) {
        StringBuilder line = new StringBuilder().append(System.currentTimeMillis());
        for (Object field : fields) line.append("\t").append(field);
        System.out.println(line.toString().replace('\n', ' '));
        System.out.flush();
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        for (var one : partitions) if (owned.add(one.partition())) say("owns", name, one.partition());
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        for (var one : partitions) if (owned.remove(one.partition())) say("gives", name, one.partition());
    }

    Properties settings() {
        Properties made = new Properties();
        made.put("bootstrap.servers", servers);
        made.put("client.id", name);
        made.put("group.id", topic + "-" + protocol);
        made.put("group.protocol", protocol);
        made.put("enable.auto.commit", "false");
        made.put("auto.offset.reset", "latest");
        made.put("request.timeout.ms", "6000");
        made.put("default.api.timeout.ms", "15000");
        made.put("metadata.max.age.ms", "2000");
        made.put("reconnect.backoff.max.ms", "500");
        if (protocol.equals("classic")) {
            made.put("session.timeout.ms", "10000");
            made.put("heartbeat.interval.ms", "2000");
            made.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer.RangeAssignor");
        }
        return made;
    }

    @Override
    public void run() {
        while (!stopping) {
            try (var consumer = new KafkaConsumer<>(settings(), new StringDeserializer(), new StringDeserializer())) {
                consumer.subscribe(List.of(topic), this);
                long end = System.currentTimeMillis() + (long) (staysMs * (1 + 2 * random.nextDouble()));
                while (!stopping && (staying || System.currentTimeMillis() < end)) {
                    consumer.poll(Duration.ofMillis(pauseMs));
                    if (!owned.isEmpty()) commit(consumer);
                }
                giveAll();
            } catch (KafkaException error) {
                say("anew", name, error);
                giveAll();
                try {
                    Thread.sleep(500);
                } catch (InterruptedException end) {
                    return;
                }
            }
        }
    }

    void giveAll() {
        for (int partition : owned) say("gives", name, partition);
        owned.clear();
    }

    void commit(KafkaConsumer<String, String> consumer) {
        turn++;
        List<Integer> chosen = new ArrayList<>(owned);
        Collections.shuffle(chosen, random);
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (int partition : chosen.subList(0, Math.min(3, chosen.size()))) {
            offsets.put(new TopicPartition(topic, partition), new OffsetAndMetadata(turn * 1000 + number));
        }
        for (var one : offsets.entrySet()) say("commits", name, one.getKey().partition(), one.getValue().offset());
        String kind = "acknowledged", told = "";
        try {
            consumer.commitSync(offsets, Duration.ofSeconds(15));
        } catch (KafkaException error) {
            kind = "unknown";
            told = error.getClass().getSimpleName();
        }
        for (var one : offsets.entrySet()) {
            say("committed", name, one.getKey().partition(), one.getValue().offset(), kind, told);
        }
    }
}
