package io.github.nccl4j.tools.doctor;

import java.util.List;

/** A check of one subject. Reads only the inputs of its constructor. */
interface Check {

    /** The subject: a heading of the report. */
    String name();

    /** Runs the check and returns its findings, at least one. */
    List<Finding> run();
}
