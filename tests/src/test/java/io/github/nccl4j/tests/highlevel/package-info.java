/** Tests of the highlevel package, as programs see it. */
package io.github.nccl4j.tests.highlevel;
