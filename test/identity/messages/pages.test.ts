import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { loadConfig } from '../../../src/config/load.ts'
import type { TemplateValue } from '../../../src/core/template.ts'
import { loadMessageTemplates } from '../../../src/domain/identity/message-templates.ts'
import { kindOf, PAGES, type PageName } from '../../../src/domain/page-rules.ts'
import { loadPages } from '../../../src/domain/pages.ts'
import { OWN_TEMPLATES } from '../../../src/outbound/template-files.ts'
import { startAccountServer } from '../../support/account-server.ts'
import { runProgramHere } from '../../support/run-hearth.ts'

const NAMES = Object.keys(PAGES) as PageName[]
const LANGUAGES = ['en', 'de'] as const
const LISTS = new Set(['choices', 'languages', 'policies', 'texts'])
const EVIL = `"'><script>alert(1)</script>&`
const CUT_LINK = '/_matrix/identity/v2/validate/email/submitToken?sid=abc'

let parent: string
let directory: string
beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'hearth-pages-'))
  directory = join(parent, 'mine')
  await mkdir(directory)
})
afterEach(() => rm(parent, { recursive: true }))

async function write(name: string, content: string | Uint8Array): Promise<void> {
  await mkdir(dirname(join(directory, name)), { recursive: true })
  await writeFile(join(directory, name), content)
}
const own = (name: string) => readFile(join(OWN_TEMPLATES, 'default/en', name), 'utf8')
const hearth = (...words: string[]) =>
  runProgramHere([...words, '--set', `identity.templates_dir=${directory}`], { directory: parent })

/** Every value of a page, full of what must not get out of its place. Lists are looked into three deep. */
function evilValues(name: PageName, depth = 0): Record<string, TemplateValue> {
  const { values, markup = [] } = kindOf(name)
  return Object.fromEntries(
    values.map((value) => {
      if (LISTS.has(value)) return [value, depth > 2 ? [] : [evilValues(name, depth + 1)]]
      return [value, markup.includes(value) ? `<i>${value}</i>` : `${value}${EVIL}`]
    }),
  )
}

test('all templates that come with the program are as those of operators must be', async () => {
  // By another name, so that each is read as if an operator had written it.
  const templates_dir = `${OWN_TEMPLATES}/`
  const { config } = loadConfig({ values: { identity: { templates_dir } }, directory: parent })
  expect((await loadPages(config)).languages).toEqual(['de', 'en'])
  const files = (await readdir(OWN_TEMPLATES, { recursive: true })).filter((path) => path.endsWith('.mail'))
  const { names } = await loadMessageTemplates(templates_dir)
  expect(names.filter((name) => name.endsWith('.mail'))).toEqual(files.sort())
})

test.each(LANGUAGES)(
  'D2: every page that comes with the program is there in %s, and escapes its values',
  async (language) => {
    const { config } = loadConfig({ values: { identity: { brand: `brand${EVIL}` } }, directory: parent })
    const pages = await loadPages(config)
    for (const name of NAMES) {
      const { html } = pages.render(name, evilValues(name), { languages: [language] })
      expect(html, name).toContain(`<html lang="${language}">`)
      expect(html, name).not.toContain('<script')
      expect(html, name).not.toContain('{{')
      const needed = (kindOf(name).needs ?? []).filter((value) => !LISTS.has(value))
      for (const value of needed) expect(html, name).toContain(value)
      expect(html, name).toMatch(/<title>.+ · brand&#34;&#39;&#62;.*<\/title>/)
    }
  },
)

test("D2: the operator's pages and frame take the place of ours, in the browser's language", async () => {
  const style = 'body { background: #123 }'
  await write('default/fr/link-unknown.page', 'Heading: Lien inconnu de {{brand}}\n\n<p>{{errcode}}</p>\n')
  await write('default/en/link-unknown.page', 'Heading: Lost\nFooter: by {{server_name}}\n\n<p>Mine.</p>\n')
  await write(
    'default/en/frame.html',
    `<html lang="{{language}}"><style>${style}</style><h1>{{heading}}</h1>{{content}}`,
  )
  const server = await startAccountServer({ identity: { templates_dir: directory, brand: 'Acme & Sons' } })
  const open = async (path: string, language: string) => {
    const answer = await fetch(server.baseUrl + path, { headers: { 'accept-language': language } })
    return { policy: answer.headers.get('content-security-policy'), html: await answer.text() }
  }
  const french = await open(CUT_LINK, 'xx, fr-CA;q=0.9, de;q=0.5')
  expect(french.html).toContain('<h1>Lien inconnu de Acme &#38; Sons</h1><p>M_MISSING_PARAMS</p>')
  expect(french.html).toContain('<html lang="fr">')
  const hash = createHash('sha256').update(style).digest('base64')
  expect(french.policy).toMatch(new RegExp(`^default-src 'none'; style-src 'sha256-${hash.replace(/[+/]/g, '\\$&')}';`))
  expect((await open(CUT_LINK, 'it')).html).toContain('<h1>Lost</h1><p>Mine.</p>')
  expect((await open(CUT_LINK, 'de')).html).toContain('<h1>Dieser Link ist hier nicht bekannt</h1>')
  expect((await open('/', 'de-AT')).html).toContain('<h2>Was das ist</h2>')
  const lost = '/_matrix/client/v3/auth/m.login.dummy/fallback/web?session=nothing'
  expect((await open(lost, 'de')).html).toContain('<h1>Hier ist nichts zu tun</h1>')
  const none = '/_matrix/client/v3/login/sso/redirect/none?redirectUrl=https://app.example.org'
  expect((await open(none, 'de')).html).toContain('Diesen Weg zur Anmeldung gibt es hier nicht')
  await server.close()
})

const page = (body: string) => `Heading: x\n\n${body}\n`
/** What is wrong, the file with it, the line that is named and what is said. */
const WRONG: readonly [
  what: string,
  file: string,
  content: string | Uint8Array,
  line: number | undefined,
  says: string,
][] = [
  [
    'a value that it does not have',
    'default/en/link-wrong.page',
    page('<p>\n{{tokn}}</p>'),
    4,
    'there is no "tokn"; known are brand,',
  ],
  [
    'a value that has to be there',
    'default/de/new-password.page',
    page('<p>Yes?</p>'),
    1,
    '"{{form}}" must not be left out',
  ],
  [
    'a list that has to be there',
    'default/de/sso-choose.page',
    page('{{link}} {{name}}'),
    1,
    '"{{choices}}" must not be left out',
  ],
  [
    'a field that has to be there',
    'default/en/fallback-password.page',
    page('{{form}}<input name="pass">'),
    1,
    'name="password"',
  ],
  ['no heading', 'default/en/fallback-lost.page', '\n<p>x</p>', 1, 'needs the header Heading'],
  [
    'another header',
    'default/en/fallback-lost.page',
    'Heading: x\nTitle: y\n\n',
    2,
    'expected Heading, Subheading, Footer',
  ],
  [
    'a section that never ends',
    'default/en/link-wrong.page',
    page('a\n{{#email}}'),
    4,
    '"email" is opened here and never closed',
  ],
  ['a script', 'default/en/link-wrong.page', page('a\nb <ScRipt src="x">'), 4, 'a page holds no <script>'],
  [
    'an attribute that is a script',
    'default/en/link-wrong.page',
    page('<p title=">" onclick="x">'),
    3,
    'runs a script',
  ],
  ['a link that is a script', 'default/en/link-wrong.page', page('<a href="javascript:x">'), 3, 'not to a script'],
  [
    'a value without quotes',
    'default/en/link-confirmed.page',
    page('<a class="x" href={{next_link}}>'),
    3,
    'stands in quotes',
  ],
  ['a value as it is', 'default/en/link-wrong.page', page('{{errcode | text}}'), 3, 'there is no filter "text" here'],
  [
    'a style outside the frame',
    'default/en/link-wrong.page',
    page('<style>p {}</style>'),
    3,
    'belongs into frame.html',
  ],
  [
    'a value in a style',
    'default/en/frame.html',
    '{{heading}}{{content}}\n<style>\n{{brand}}</style>',
    3,
    'no values stand in a <style>',
  ],
  ['a frame around nothing', 'default/en/frame.html', '<h1>{{heading}}</h1>', 1, '"{{content}}" must not be left out'],
  [
    'a file as large as none is',
    'default/en/link-wrong.page',
    page('x'.repeat(300_000)),
    undefined,
    'a template may have 262144',
  ],
  ['a text in another encoding', 'default/en/link-wrong.page', Uint8Array.of(72, 252), undefined, 'is not UTF-8'],
  [
    'a page that nobody knows',
    'default/en/link-wrogn.page',
    page('x'),
    undefined,
    'there is no such template; known are',
  ],
  ['a page outside the folder of a language', 'de/link-wrong.page', page('x'), undefined, '<brand>/<language>'],
  [
    'a page in the folder of no language',
    'default/de_AT/link-wrong.page',
    page('x'),
    undefined,
    'named after no language',
  ],
]

test.each(WRONG)('D2: config check and the start find a page with %s', async (_what, file, content, line, says) => {
  await write(file, content)
  const { code, stderr } = await hearth('config', 'check')
  const place = line === undefined ? dirname(join(directory, file)) : `${join(directory, file)}:${line}: `
  expect([code, stderr]).toEqual([78, expect.stringContaining(place)])
  expect(stderr).toContain(says)
  expect(stderr).toContain('identity.templates_dir')
  const { config } = loadConfig({ values: { identity: { templates_dir: directory } }, directory: parent })
  await expect(loadPages(config)).rejects.toThrow(says)
})

test('D2: our own pages, copied, are good pages', async () => {
  for (const name of [...NAMES, 'frame.html']) await write(`default/it/${name}`, await own(name))
  expect(await hearth('config', 'check')).toMatchObject({ code: 0 })
})

test('D2: preview-page shows a page, makes nothing, and its --help lists all', async () => {
  await write(
    'default/fr/sso-name.page',
    page('{{form}}<input name="username" value="{{username}}"> Bonjour {{display_name}}'),
  )
  expect((await hearth('identity', 'preview-page', 'sso-name', '--language', 'fr-CA')).stdout).toContain(
    '<input name="username" value="alice"> Bonjour Alice &#38; &#34;Bob&#34; &#60;3',
  )
  for (const name of NAMES) {
    const { code, stdout } = await hearth('identity', 'preview-page', name, '--language', 'de')
    expect([code, stdout]).toEqual([0, expect.stringContaining('<html lang="de">')])
  }
  expect((await hearth('identity', 'preview-page')).stdout).toContain('<h1>Thank you, that worked</h1>')
  const help = (await hearth('identity', 'preview-page', '--help')).stdout
  for (const name of NAMES) expect(help).toContain(name.replace('.page', ''))
  const usage = (name: string, ...more: string[]) => hearth('identity', name, ...more)
  expect(await usage('preview-page', 'nothing')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('known are welcome.page'),
  })
  for (const verb of ['preview-page', 'preview-mail']) {
    const { code, stderr } = await usage(verb, '--language', 'xx')
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining('there are no templates in "xx"; there are some in de, en'),
    ])
  }
  expect(await readdir(parent)).toEqual(['mine'])
})
