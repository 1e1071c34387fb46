package io.github.nccl4j.launch.env;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Parser of environment variables of Slurm. */
public final class Slurm {
    /** Step ids from here on are not of srun, but of scripts, shells of salloc and prologues. */
    private static final long FIRST_SPECIAL_STEP = 0xffff_fff0L;

    private static final Pattern TASKS = Pattern.compile("(\\d{1,9})(?:\\(x(\\d{1,9})\\))?");

    private Slurm() {}

    /**
     * True if this process is a task of srun. SLURM_PROCID and SLURM_NTASKS are set for other processes of an allocation, too.
     */
    static boolean isStep(Variables variables) {
        String step = variables.text("SLURM_STEP_ID");
        if (step == null || !variables.has("SLURM_PROCID")) {
            return false;
        }
        try {
            return Long.parseLong(step) < FIRST_SPECIAL_STEP;
        } catch (NumberFormatException special) {
            // Such as "batch", "extern", "interactive".
            return false;
        }
    }

    /**
     * Returns the first host of a list: n08 of {@code "n[08-11,20],login1"}. Slurm lists the hosts in the order of the tasks.
     */
    static String firstHost(String hosts) {
        StringBuilder name = new StringBuilder();
        int i = 0;
        while (i < hosts.length() && hosts.charAt(i) != ',') {
            char c = hosts.charAt(i);
            if (c != '[') {
                name.append(c);
                i++;
                continue;
            }
            int end = hosts.indexOf(']', i);
            if (end < 0) {
                throw new IllegalArgumentException("SLURM_STEP_NODELIST must have a ] for each [: " + hosts);
            }
            name.append(hosts.substring(i + 1, end).split("[-,]", 2)[0]);
            i = end + 1;
        }
        return name.toString();
    }

    /** Returns the number of tasks on a host. {@code "4(x2),3"} means 4 tasks on hosts 0 and 1, and 3 on host 2. */
    static int tasksOnHost(String tasks, int host) {
        long hosts = 0;
        for (String part : tasks.split(",")) {
            Matcher matcher = TASKS.matcher(part.strip());
            if (!matcher.matches()) {
                throw new IllegalArgumentException("SLURM_STEP_TASKS_PER_NODE must be like 4(x2),3: " + tasks);
            }
            hosts += matcher.group(2) == null ? 1 : Integer.parseInt(matcher.group(2));
            if (host < hosts) {
                return Integer.parseInt(matcher.group(1));
            }
        }
        throw new IllegalArgumentException(
                "SLURM_STEP_TASKS_PER_NODE must include host " + host + " (SLURM_NODEID): " + tasks);
    }
}
