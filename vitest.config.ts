import { configDefaults, defineConfig } from 'vitest/config'
import { compiledSources, IS_COMPILED } from './test/support/compiled-sources.ts'
import { LongestFirst } from './test/support/longest-first.ts'

export default defineConfig({
  plugins: [compiledSources()],
  test: {
    include: ['test/**/*.test.ts'],
    // These run by `vitest.long.config.ts`.
    exclude: [...configDefaults.exclude, 'test/**/*.long.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: ['test/support/answered.ts'],
    // A busy machine is not a reason to fail: `waitUntil` gives up before.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    server: { deps: { external: [IS_COMPILED] } },
    pool: 'forks',
    // Two more than the two cores this is measured on: tests wait for half of their time.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    // Files of one worker share what they load: no test may change what a module or the process keeps.
    isolate: false,
    // What TypeScript is turned into is kept from one run to the next.
    experimental: { fsModuleCache: true },
  },
})
