import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { PROJECT_ROOT } from '../support/project.ts'
import { MUSTS_OF_OAUTH } from './oauth.ts'

test('what the standards of OAuth demand is 60 lines at least, and each has a test that is there', () => {
  expect(MUSTS_OF_OAUTH.length).toBeGreaterThanOrEqual(60)
  const texts = new Map<string, string>()
  const textOf = (file: string) => {
    if (!texts.has(file)) texts.set(file, readFileSync(join(PROJECT_ROOT, file), 'utf8'))
    return texts.get(file)!
  }
  expect(MUSTS_OF_OAUTH.filter(({ file, test: words }) => !textOf(file).includes(words))).toEqual([])
  expect(new Set(MUSTS_OF_OAUTH.map(({ must }) => must)).size).toBe(MUSTS_OF_OAUTH.length)
})
