package io.github.nccl4j.samples.support;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Map;
import java.util.Properties;
import org.junit.jupiter.api.Test;

class EngineSettingTest {

    private final Properties properties = new Properties();

    @Test
    void automaticUnlessSaid() {
        assertEquals(new EngineSetting("auto", null), EngineSetting.of(null, null, properties, Map.of()));
        assertEquals(
                new EngineSetting("auto", null),
                EngineSetting.of(null, null, properties, Map.of("NCCL4J_ENGINE", "", "NCCL4J_LIBRARY", "")));
    }

    @Test
    void optionsWinOverPropertiesAndThoseOverTheEnvironment() {
        Map<String, String> environment = Map.of("NCCL4J_ENGINE", "rccl", "NCCL4J_LIBRARY", "/env.so");
        assertEquals(new EngineSetting("rccl", "/env.so"), EngineSetting.of(null, null, properties, environment));
        properties.setProperty("nccl4j.engine", "nccl");
        properties.setProperty("nccl4j.library", "/property.so");
        assertEquals(new EngineSetting("nccl", "/property.so"), EngineSetting.of(null, null, properties, environment));
        assertEquals(
                new EngineSetting("nccl", "/option.so"), EngineSetting.of(null, "/option.so", properties, environment));
        assertEquals(new EngineSetting("host", null), EngineSetting.of("host", null, properties, environment));
    }

    @Test
    void anUnknownEngineIsRefused() {
        assertEquals(
                "no such engine: 'cuda' (nccl, rccl, host or auto)",
                assertThrows(IllegalArgumentException.class, () -> EngineSetting.of("cuda", null, properties, Map.of()))
                        .getMessage());
    }
}
