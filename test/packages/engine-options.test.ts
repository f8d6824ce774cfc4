import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ENGINE_OPTIONS } from '../support/engine-options.ts'
import { PROJECT_ROOT } from '../support/project.ts'

test.each([
  ['package.json', `node ${ENGINE_OPTIONS} dist/main.js serve`],
  ['Dockerfile', `NODE_OPTIONS="${ENGINE_OPTIONS}" `],
  ['contrib/debian/hearth', `NODE_OPTIONS=${ENGINE_OPTIONS}}`],
  ['contrib/systemd/hearth.service', `"NODE_OPTIONS=${ENGINE_OPTIONS}"\n`],
  ['docs/deploying.md', `NODE_OPTIONS="${ENGINE_OPTIONS}"`],
])('a server that is started by %s has the same options of the engine as any other', (file, setting) => {
  expect(readFileSync(join(PROJECT_ROOT, file), 'utf8')).toContain(setting)
})
