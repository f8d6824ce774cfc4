import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, it, test } from 'vitest'
import type { Host } from '../../../src/cli/command.ts'
import { identityCommand } from '../../../src/cli/identity/identity.ts'
import { loadMessageTemplates, TEMPLATE_VALUES } from '../../../src/domain/identity/message-templates.ts'

let parent: string
let directory: string
beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'hearth-templates-'))
  directory = join(parent, 'templates')
  await mkdir(directory)
})
afterEach(() => rm(parent, { recursive: true }))

async function write(name: string, content: string): Promise<void> {
  await mkdir(dirname(join(directory, name)), { recursive: true })
  await writeFile(join(directory, name), content)
}

const named = (subject: string) => `From: a@b.example\nSubject: ${subject}\n\n--- text\n{{link}}\n`
const evil = '<script>"\'&\r\nBcc: all@example.org'

it.each(['en', 'de'])('our own templates in %s hold their values, escaped', async (language) => {
  const templates = await loadMessageTemplates(undefined)
  for (const name of ['validate-email.mail', 'invite.mail'] as const) {
    const values = Object.fromEntries(TEMPLATE_VALUES[name].map((value) => [value, `${value}${evil}`]))
    const { from, subject, headers, text, html } = templates.find(name, undefined, [language])({
      ...values,
      from: 'identity@example.org',
    })
    expect(from.address).toBe('identity@example.org')
    expect(`${from.name}${subject}${JSON.stringify(headers)}`).not.toMatch(/[\r\n]/)
    expect(text).toContain(values.link)
    expect(html).toContain('href="link&#60;script&#62;')
    expect(html).not.toContain('<script')
    expect(html).toContain(`<html lang="${language}">`)
  }
  const sms = templates.find('validate-msisdn.txt', undefined, [language])({ brand: 'Hearth', token: '123456' })
  expect(sms).toContain('123456')
  expect(sms.length).toBeLessThan(160)
})

test('the best fit is brand first, then language, then what comes with the program', async () => {
  await write('acme/en/validate-email.mail', named('acme en'))
  await write('acme/de/validate-email.mail', named('acme de'))
  await write('Zeta/pt-BR/validate-email.mail', named('zeta pt-br'))
  await write('default/fr/validate-email.mail', named('default fr'))
  await write('default/de/validate-email.mail', named('default de'))
  const templates = await loadMessageTemplates(directory)
  const subject = (brand: string | undefined, ...languages: string[]) =>
    templates.find('validate-email.mail', brand, languages)({}).subject
  expect(subject('acme', 'de', 'en')).toBe('acme de')
  expect(subject('ACME', 'fr')).toBe('acme en')
  expect(subject('zeta', 'pt-br', 'pt')).toBe('zeta pt-br')
  expect(subject('zeta', 'fr')).toBe('default fr')
  expect(subject('nobody', 'fr')).toBe('default fr')
  expect(subject(undefined, 'de')).toBe('default de')
  expect(subject(undefined, 'xx')).toBe('Confirm your email address')
  expect(templates.find('invite.mail', 'acme', ['de'])({ sender: '@a:b' }).subject).toBe(
    '@a:b lädt Sie zum Gespräch ein',
  )
})

it.each(['../secret', '..', 'acme/../../secret', '.', '', '__proto__', 'constructor', '\0', 'default/en'])(
  'the brand or language %j reaches no file',
  async (name) => {
    await write('../secret/en/validate-email.mail', named('secret'))
    const templates = await loadMessageTemplates(directory)
    const subjects = [
      templates.find('validate-email.mail', name, ['en'])({}).subject,
      templates.find('validate-email.mail', undefined, [name, `${name}/../en`])({}).subject,
    ]
    expect(subjects).toEqual(['Confirm your email address', 'Confirm your email address'])
  },
)

test('a mistake is told with file and line', async () => {
  await write('acme/en/validate-email.mail', named('{{tokn}}'))
  const message = `${join(directory, 'acme/en/validate-email.mail')}:2: there is no "tokn"`
  await expect(loadMessageTemplates(directory)).rejects.toThrow(message)
})

const WITHOUT_PROOF = [
  ['validate-email.mail', '"{{link}}" or "{{token}}"'],
  ['reset-password.mail', '"{{link}}" or "{{token}}"'],
  ['validate-msisdn.txt', '"{{token}}"'],
  ['invite.mail', '"{{link}}" or "{{token}}" or "{{room_id}}"'],
] as const

test.each(WITHOUT_PROOF)(
  'D2: a message %s that nobody could do anything with stops the start',
  async (name, missing) => {
    const mail = named('{{brand}}').replace('{{link}}', '{{brand}}')
    await write(`acme/en/${name}`, name.endsWith('.txt') ? '{{brand}}' : mail)
    const message = `${join(directory, 'acme/en', name)}:1: ${missing}`
    await expect(loadMessageTemplates(directory)).rejects.toThrow(message)
  },
)

test('other files are left alone, and no directory is no mistake', async () => {
  await write('acme/en/notes.txt', '{{')
  await write('README', '{{')
  expect((await loadMessageTemplates(directory)).names).toEqual(
    (await loadMessageTemplates(join(directory, 'nothing'))).names,
  )
})

test('hearth identity preview-mail shows what would be sent, and makes nothing', async () => {
  await write('acme/de/invite.mail', named('Hallo von {{sender_display_name}}'))
  const hearth = async (...words: string[]) => {
    const printed: string[] = []
    const host = { env: {}, directory: parent, uid: 0, print: (text: string) => void printed.push(text) }
    const set = `identity.templates_dir=${directory}`
    expect(await identityCommand.run(host as unknown as Host, ['preview-mail', ...words, '--set', set])).toBe(0)
    return printed.join('\n')
  }
  expect(await hearth()).toMatch(/^Subject: Confirm your email address$/m)
  expect(await hearth('validate-email.mail', '--language', 'de-CH')).toMatch(/^Subject: =\?UTF-8\?/m)
  expect(await hearth('invite', '--brand', 'acme', '--language', 'de')).toMatch(
    /^Subject: =\?UTF-8\?Q\?Hallo_von_Alice/m,
  )
  expect(await hearth('validate-msisdn')).toMatch(/^Your localhost code is 123456/)
  await expect(hearth('nothing')).rejects.toThrow(/known are validate-email.mail/)
  expect(await readdir(parent)).toEqual(['templates'])
})
