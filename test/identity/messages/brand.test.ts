import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadConfig } from '../../../src/config/load.ts'
import { TEMPLATE_VALUES } from '../../../src/domain/identity/message-templates.ts'
import { brandOf } from '../../../src/domain/public-address.ts'
import { PROJECT_ROOT } from '../../support/project.ts'
import { runProgramHere } from '../../support/run-hearth.ts'

const hearth = async (words: string[], env: Record<string, string> = {}) =>
  (await runProgramHere(words, { directory: tmpdir(), env })).stdout

test("D2: the default brand in mails is the server's name, and an own one takes its place", async () => {
  const env = { HEARTH__SERVER_NAME: 'chat.example.org' }
  const mail = await hearth(['identity', 'preview-mail', 'validate-email'], env)
  expect(mail).toMatch(/^From: "?chat\.example\.org"? <no-reply@chat\.example\.org>$/m)
  expect(mail).not.toContain('Hearth')
  const own = await hearth(['identity', 'preview-mail', 'validate-email'], { ...env, HEARTH__IDENTITY__BRAND: 'Acme' })
  expect(own).toMatch(/^From: Acme </m)
  const { config } = loadConfig({ values: { server_name: 'chat.example.org' }, directory: tmpdir() })
  expect(brandOf(config)).toBe('chat.example.org')
})

test('D2: preview-mail --help lists all templates', async () => {
  const help = await hearth(['identity', 'preview-mail', '--help'])
  for (const name of Object.keys(TEMPLATE_VALUES)) expect(help).toContain(name.replace(/\.\w+$/, ''))
})

test('D2: the README says that there is an identity service, and how to run it alone', async () => {
  const readme = await readFile(join(PROJECT_ROOT, 'README.md'), 'utf8')
  expect(readme).toMatch(/identity\s+service/)
  expect(readme).toContain('--roles identity')
})
