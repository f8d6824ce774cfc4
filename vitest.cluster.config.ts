import { defineConfig } from 'vitest/config'
import { filesThatStartServers, WITHOUT_NODES } from './test/cluster/suite.ts'
import usual from './vitest.config.ts'

/** The tests that start servers, without those that take minutes, where each server is two nodes: `npm run test:cluster` runs them, and CI does at last. */
export default defineConfig({
  ...usual,
  test: {
    ...usual.test,
    include: [...filesThatStartServers()],
    exclude: Object.keys(WITHOUT_NODES),
    // Each server is two: they wait less.
    maxWorkers: 3,
    env: { SERVERS_OF_TESTS: 'two nodes' },
    // Chance decides which node answers. Until every way through two nodes is understood, only what fails each time stops a change.
    retry: 2,
  },
})
