import { configDefaults, defineConfig } from 'vitest/config'
import usual from './vitest.config.ts'

/** Simulations, fuzzing, kills, hostile servers and what starts many processes. `npm run test:long` runs them, and CI does after `npm test`. */
export default defineConfig({
  ...usual,
  test: {
    ...usual.test,
    include: ['test/**/*.long.test.ts'],
    exclude: configDefaults.exclude,
    testTimeout: 300_000,
    // Many of them measure.
    maxWorkers: 3,
  },
})
