/** Tests of the launch package: rank sources, TCP store, inquiries. */
package io.github.nccl4j.tests.launch;
