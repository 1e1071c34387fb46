/** The host engine, through the bindings: against an oracle in plain Java, between threads and processes, and when things fail. */
package io.github.nccl4j.tests.host;
