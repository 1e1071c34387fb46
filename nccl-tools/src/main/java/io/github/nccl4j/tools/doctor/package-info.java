/** The checks of {@code nccl4j doctor}. Each check is a class that receives all its inputs, so that tests can replace them. */
package io.github.nccl4j.tools.doctor;
