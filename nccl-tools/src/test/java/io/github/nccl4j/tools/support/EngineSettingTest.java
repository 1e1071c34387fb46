package io.github.nccl4j.tools.support;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.junit.jupiter.api.Test;

class EngineSettingTest {

    private final Properties properties = new Properties();

    @Test
    void defaultIsAutomatic() {
        assertEquals(new EngineSetting("auto", null), EngineSetting.of(null, null, properties, Map.of()));
        assertEquals(
                new EngineSetting("auto", null),
                EngineSetting.of(null, null, properties, Map.of("NCCL4J_ENGINE", "", "NCCL4J_LIBRARY", "")));
    }

    @Test
    void optionsOverridePropertiesAndPropertiesOverrideVariables() {
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
    void rejectsUnknownEngine() {
        assertEquals(
                "no such engine: 'cuda' (nccl, rccl, host or auto)",
                assertThrows(IllegalArgumentException.class, () -> EngineSetting.of("cuda", null, properties, Map.of()))
                        .getMessage());
    }

    @Test
    void decideKeepsAnExplicitSetting() {
        EngineSetting automatic = new EngineSetting("auto", null);
        EngineSetting host = new EngineSetting("host", null);
        EngineSetting library = new EngineSetting("auto", "/libnccl.so");
        assertTrue(automatic.isAutomatic() && !automatic.isHost());
        assertTrue(!host.isAutomatic() && host.isHost());
        assertTrue(!library.isAutomatic() && !library.isHost());
        assertFalse(new EngineSetting("host", "/libnccl.so").isHost());
        for (EngineSetting named : List.of(host, library)) {
            assertEquals(new EngineSetting.Decision(named, Optional.empty()), named.decide(4));
        }
    }

    /** A rank gets both variables, so that it does not inherit one from the launcher. */
    @Test
    void environmentSetsBothVariables() {
        assertEquals(
                Map.of("NCCL4J_ENGINE", "host", "NCCL4J_LIBRARY", ""), new EngineSetting("host", null).environment());
        assertEquals(
                Map.of("NCCL4J_ENGINE", "auto", "NCCL4J_LIBRARY", "/libnccl.so"),
                new EngineSetting("auto", "/libnccl.so").environment());
    }
}
