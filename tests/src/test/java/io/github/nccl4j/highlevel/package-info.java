/** Tests of what the highlevel package keeps to itself. */
package io.github.nccl4j.highlevel;
