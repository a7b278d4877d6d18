import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.QuotaConfig;

/** Prints what a release of Kafka knows of each setting: name, type, default, importance, how it changes while a broker runs. */
public class Settings {
    public static void main(String[] arguments) {
        Map<String, String> changed = DynamicBrokerConfig.dynamicConfigUpdateModes();
        Map<String, ConfigDef.ConfigKey> keys = new TreeMap<>(kafka.server.KafkaConfig.configDef().configKeys());
        keys.putAll(QuotaConfig.brokerQuotaConfigs().configKeys());
        for (ConfigDef.ConfigKey key : keys.values()) {
            boolean has = key.hasDefault() && key.defaultValue != null;
            String value = has ? ConfigDef.convertToString(key.defaultValue, key.type) : "";
            String kind = key.hasDefault() ? (has ? "value" : "null") : "none";
            System.out.println("SETTING\t" + String.join("\t", key.name, key.type.toString(), kind, value,
                key.importance.toString(), String.valueOf(changed.get(key.name))));
        }
    }
}
