import { configDefaults, defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // These run by `vitest.long.config.ts`.
    exclude: [...configDefaults.exclude, 'test/**/*.long.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: ['test/support/answered.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    pool: 'forks',
    // One more than the two cores this is measured on: tests also wait.
    maxWorkers: 3,
    // Files of one worker share what they load: no test may change what a module or the process keeps.
    isolate: false,
    // What TypeScript is turned into is kept from one run to the next.
    experimental: { fsModuleCache: true },
  },
})
