/** What {@code nccl4j doctor} looks at: each check is a class that is given all that it reads. */
package io.github.nccl4j.samples.doctor;
