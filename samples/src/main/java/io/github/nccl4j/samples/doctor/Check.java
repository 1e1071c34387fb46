package io.github.nccl4j.samples.doctor;

import java.util.List;

/** Looks at one subject. Reads what it was made with, and nothing else. */
interface Check {

    /** The subject, as the report's heading. */
    String name();

    /** What was found; never empty. */
    List<Finding> run();
}
