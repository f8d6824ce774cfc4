import { readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { EXIT_MEANINGS } from '../src/cli/command.ts'
import { PAGE_NAMES } from '../src/cli/identity/identity-preview-page.ts'
import { exampleYaml, jsonSchema, optionTable } from '../src/config/render.ts'
import { ERROR_STATUS } from '../src/core/errors.ts'
import { groupBy } from '../src/core/group-by.ts'
import { FRAME_RULES, type PageRules } from '../src/core/page-template.ts'
import { TEMPLATE_VALUES } from '../src/domain/identity/message-templates.ts'
import { APPSERVICE_NEWS_KEPT_MS, MAX_APPSERVICE_NEWS, MAX_BINDINGS_IN_MEMORY } from '../src/domain/limits.ts'
import { createMetrics } from '../src/domain/metrics.ts'
import { kindOf, type PageName } from '../src/domain/page-rules.ts'
import { APPSERVICE_OPERATIONS } from '../src/outbound/appservice.ts'
import { MAX_TEMPLATE_BYTES } from '../src/outbound/template-files.ts'
import { ERRORS } from '../test/accounts/rows.ts'
import appservice from '../test/conformance/appservice.json' with { type: 'json' }
import { findLineTests, LINES } from '../test/conformance/hardening.ts'
import identity from '../test/conformance/identity.json' with { type: 'json' }
import served from '../test/conformance/operations.json' with { type: 'json' }
import { importPicture } from './import-picture.ts'
import { hashesOf } from './migration-hashes.ts'

/** Writes every file that is made from the code; with `--check`, only says which of them are stale. */
const isCheck = process.argv.includes('--check')

const FILES: Readonly<Record<string, string>> = {
  'config/example.yaml': exampleYaml(),
  'config/schema.json': jsonSchema(),
  'docs/operations.md': await operations(),
  'docs/errors.md': await errors(),
  'migrations/hashes.json': await hashesOf(fileURLToPath(new URL('../migrations', import.meta.url))),
  'docs/conformance.md': conformance(),
  'docs/ARCHITECTURE.md': await architecture(),
}

const stale: string[] = []
for (const [name, content] of Object.entries(FILES)) {
  const path = new URL(`../${name}`, import.meta.url)
  if ((await readFile(path, 'utf8').catch(() => '')) === content) continue
  stale.push(name)
  if (!isCheck) await writeFile(path, content)
}
if (stale.length > 0) console.log(`${isCheck ? 'stale (run npm run docs)' : 'wrote'}: ${stale.join(', ')}`)
process.exitCode = isCheck && stale.length > 0 ? 1 : 0

async function errors(): Promise<string> {
  const places = await placesOfCodes()
  const shown = new Map(ERRORS.map(([code, operation, file]) => [code, `\`${operation}\`: \`test/${file}\``]))
  const rows = Object.entries(ERROR_STATUS).map(
    ([code, status]) =>
      `| \`${code}\` | ${status} | ${places.get(code)?.join(', ') ?? 'never answered here'} | ${shown.get(code) ?? ''} |`,
  )
  return `${generated('Error codes')}
An error is an answer of the status below with the body \`{"errcode": "M_...", "error": "what happened, in words"}\`; some carry
further keys, such as \`retry_after_ms\`. Where the specification asks for it, an endpoint answers a code with another status. The
next column says which folders of \`src/\` raise it or answer to it, the last one an operation that does, with the test that shows it, for
each code that the description of the client interface lists.

| code | status | where | shown |
|---|---|---|---|
${rows.join('\n')}
`
}

/** The page as it is, with the imports drawn anew between their two marks. */
async function architecture(): Promise<string> {
  const page = await readFile(new URL('../docs/ARCHITECTURE.md', import.meta.url), 'utf8')
  const [before, after, ...more] = page.split(/(?<=<!-- imports: .*-->\n)[\s\S]*(?=<!-- end of imports -->)/)
  if (before === undefined || after === undefined || more.length > 0)
    throw new Error('docs/ARCHITECTURE.md lacks the marks of its imports')
  return `${before}\n\`\`\`\n${importPicture()}\n\`\`\`\n\n${after}`
}

/** In bold what must not be left out. */
function shownValue(value: string, { needs = [] }: PageRules): string {
  return needs.includes(value) ? `**\`${value}\`**` : `\`${value}\``
}

function pageValues(name: PageName): string {
  const kind = kindOf(name)
  const fields = (kind.fields ?? []).map((field) => `a field **\`name="${field}"\`**`)
  return [...kind.values.map((value) => shownValue(value, kind)), ...fields].join(', ') || 'none'
}

/** Which tests hold each line of what was found from outside. */
function conformance(): string {
  const tests = groupBy(findLineTests(), ({ id }) => id)
  const sections = Object.entries(LINES).map(([id, line]) => {
    const proofs = (tests.get(id) ?? []).map(({ file, title }) => `- \`${file}\`: ${title}`)
    return `## ${id}. ${line}\n\n${proofs.join('\n') || 'No test yet.'}`
  })
  return `${generated('Conformance')}
Black-box checks, unmodified clients, two acceptance suites and an attacker found what follows. Each line names the tests that hold it:
their titles begin with the line's id. A to E stand for availability, rooms and encryption, compatibility, operators, and bad input.

${sections.join('\n\n')}
`
}

/** The folders of the sources that name each code, the list of all codes apart. */
async function placesOfCodes(): Promise<Map<string, string[]>> {
  const root = fileURLToPath(new URL('../src', import.meta.url))
  const places = new Map<string, string[]>()
  for (const name of (await readdir(root, { recursive: true })).sort()) {
    if (!name.endsWith('.ts') || name === join('core', 'errors.ts')) continue
    const folder = `\`${dirname(name).replaceAll('\\', '/')}\``
    for (const [, code = ''] of (await readFile(join(root, name), 'utf8')).matchAll(/'(M_[A-Z_0-9]+)'/g)) {
      const known = places.get(code) ?? []
      if (!known.includes(folder)) places.set(code, [...known, folder].sort())
    }
  }
  return places
}

async function operations(): Promise<string> {
  const codes = Object.entries(EXIT_MEANINGS).map(([code, meaning]) => `| ${code} | ${meaning} |`)
  return `${generated('Operating Hearth')}
## Configuration

One YAML file, named by \`--config\` or \`HEARTH_CONFIG\`, else \`hearth.yaml\` in the working directory, else none. Each value comes
from the last of these that gives one: built-in default, file, environment, \`--set KEY=VALUE\`. The variable of \`listen.port\` is
\`HEARTH__LISTEN__PORT\`. A secret may be read from a file: \`database.url_file\` or \`HEARTH__DATABASE__URL_FILE\`. An unknown key or a
bad value stops the start with file, line, what was expected and the nearest known key. \`hearth config check\` and
\`hearth config print\` say what the server would make of it all. \`config/schema.json\` lets an editor complete and check the file.

${optionTable()}

## Database

Without \`database.url\` the server starts and owns a Postgres in \`<data_dir>/postgres\`: reachable through a unix socket only, with
\`fsync\` and \`synchronous_commit\` on. It ends with the server, also when the server is killed; it is started again when it ends by
itself. As root it runs as the user \`nobody\`. With \`database.url\` the server uses that Postgres (14 or later) and brings its tables
to this release at the start.

## Single sign-on

People sign in with accounts that they have elsewhere, at any service that speaks OpenID Connect. Register with it a web client
whose redirect address is \`<public_base_url>/_hearth/sso/callback\`; \`public_base_url\` must be what browsers see.

\`\`\`yaml
sso:
  providers:
    - id: example                        # never changes: accounts are tied to it
      name: Example Inc.
      issuer: https://login.example.org/realms/main
      client_id: hearth
      client_secret_file: /run/secrets/hearth-sso
      localpart: '{{preferred_username}}'
  trusted_clients: ['https://app.example.org/', 'element://connect']
\`\`\`

An account belongs to the provider's \`id\` and to what the service itself calls the person (\`sub\`), in the table \`user_external_id\`; names and
addresses may change there. Where the name that the template makes is taken or is none, the person chooses one. A service in a
network of your own needs \`outbound.allow_ranges\`. Only a client in \`trusted_clients\` gets people back without asking them. The log says
why a sign-in failed at a provider, without what was answered. When a provider ends somebody's session, sessions here go on: end them with
\`logout_all\` in the client or as an administrator.

## Identity service

It is served beside the homeserver, over the same database, unless \`roles\` says otherwise; \`hearth serve
--roles identity\` runs it alone, with a database of its own. Users of every homeserver may register with it by a token that their
homeserver vouches for. ${servedOf(identity)} operations of the interface, both generations counted, are served.

Policies are a list. A text without \`url\` is shown by this server, from \`identity.terms.directory\`; it is looked for at the
start. Users who have accepted every policy, each in any of its languages, may use the service; others are told
\`M_TERMS_NOT_SIGNED\`. Who accepted what and when is in the table \`identity_accepted_url\`.

\`\`\`yaml
identity:
  terms:
    policies:
      - id: privacy_policy
        version: 1.2
        languages:
          - {language: en, name: Privacy Policy}     # policies/privacy_policy-1.2-en.txt
          - {language: fr, name: Politique de confidentialité, url: https://example.org/privacy-1.2-fr.html}
\`\`\`

### Messages

Mails go to the server of \`identity.mail.smtp\`, text messages to the gateway of \`identity.sms\`. Without these they become files in
\`identity.outbox\`, and the log tells their names. A mail server that refuses, is silent, or cannot prove who it is makes the request
fail with \`M_EMAIL_SEND_ERROR\`; the client may repeat it. The log says why, without the address.

A template is the file \`<brand>/<language>/<name>\` in \`identity.templates_dir\`. The client names the brand (\`?brand=\`) and the
languages (\`?lang=\` or \`Accept-Language\`). Looked for in this order: the brand in each wanted language and in English, then the brand
\`default\` in the same ones; what is not there comes with the program. All are read at the start, which a mistake in one stops.

| template | values |
|---|---|
${Object.entries(TEMPLATE_VALUES)
  .map(([name, values]) => `| \`${name}\` | ${values.map((value) => `\`${value}\``).join(', ')} |`)
  .join('\n')}

A \`.mail\` begins with headers (\`From\` and \`Subject\` among them), then an empty line, then \`--- text\` and \`--- html\` with the parts.
\`{{name}}\` is a value, escaped for its place; \`{{name | filter}}\` takes another filter: \`html\`, \`json\`, \`header\`, \`name\` (before an
address), \`url\` or \`text\` (as it is). \`{{#name}}...{{/name}}\` stays when the value is not empty, \`{{^name}}...{{/name}}\` when it is.
A message holds its link or its token, a text message its token. \`hearth identity preview-mail\` prints what becomes of one.

### Pages

Every page that people see in a browser is a template too, in the same folders, of the brand \`default\`. The browser's languages
(\`Accept-Language\`) choose among them as they do among mails; German and English come with the program. To change a page, copy it from
\`templates/default/en\` of this release to the same place in \`identity.templates_dir\` and write it anew; to add a language, do so for
each. \`hearth identity preview-page NAME --language TAG > page.html\` shows one, and \`hearth identity preview-page --help\` lists them.

A \`.page\` begins with \`Heading:\`, and where it has them \`Subheading:\` and \`Footer:\`; after an empty line follows HTML.
\`frame.html\` stands around every page: the style, and the flame, in whose place an SVG of your own may stand. One in
\`default/en\` is for all languages that have none.

All are read and checked at the start, and by \`hearth config check\`, which name file and line: a value that is not in this table, one
of those in bold that is missing, a field that the server would miss, a \`<script>\`, an attribute without quotes before a value, a
file of more than ${MAX_TEMPLATE_BYTES / 1024} KiB. Values are escaped, with \`html\` or \`url\`. Pages run no scripts and load nothing, whatever is
written into them: browsers are told so. Styles stand in the frame's \`<style>\`; attributes \`style=\` have no effect.

\`{{form}}\` begins the page's form with what it carries along; close it with \`</form>\`. \`{{#name}}...{{/name}}\` around a list
(\`choices\`, \`languages\`, \`policies\`, \`texts\`) is repeated for each item. \`problem\` says in English what was wrong with a form;
values such as \`m_forbidden\` are there when it was just that, \`other_problem\` when it was none of them.

| template | values, beside \`brand\` and \`server_name\` |
|---|---|
| \`frame.html\` | ${FRAME_RULES.values.map((value) => shownValue(value, FRAME_RULES)).join(', ')} |
${PAGE_NAMES.map((name) => `| \`${name}\` | ${pageValues(name)} |`).join('\n')}

### Lookup and invitations

Clients hash addresses with a pepper, which is replaced when it is \`identity.lookup.pepper_hours\` old, or by \`hearth identity
rotate-pepper\`, beside a running server or without one. Lookups go on meanwhile. A rotation that was broken off is finished by the
next server or verb. Nobody but the operator (\`hearth identity show\`) is told which addresses a user
has, and no index leads there.

A homeserver that cannot be told of invitations to an address that its user has bound is told again, after 5 seconds, then twice as
long, up to an hour, for \`identity.invites.delivery_days\`. What waits is in the table \`identity_delivery\`; where \`due_at\` is NULL it was
given up, until the address is bound again. \`hearth identity invitations\` lists all that is pending, and cancels one; by themselves
invitations end after \`identity.invites.lifetime_days\`.

Lookups of hashes are answered from memory: the first one makes the server read all bindings, 70 MB a million (twice that while the
pepper is replaced), and a quarter of an hour without any lets them go. Until they are read, and where there are more than
${MAX_BINDINGS_IN_MEMORY.toLocaleString('en')}, the database answers.

## Application services

A bridge or bot is registered by a file that \`application_services.registrations\` names, itself or the directory that it is in:
\`id\`, \`url\`, \`as_token\`, \`hs_token\`, \`sender_localpart\`, \`namespaces\`, and as they are wanted \`rate_limited\` (its users have no
limits unless this is true), \`protocols\`, \`receive_ephemeral\` (who types, who has read, who is about, and messages to devices of its
users) and \`org.matrix.msc3202\` (changed device lists, and how many keys are left of its users' devices). Expressions of namespaces
match from the beginning of an id, and need not reach its end; look-ahead and back references are refused. A changed file is in force
within seconds; one with a mistake is logged with its line and leaves things as they were. \`hearth config check\` reads registrations too.

${outgoingOf(appservice)} operations are asked of services; an old service is asked at the paths without a version, and once an hour at the
new ones. A service that does not answer gets the same transaction again after 1 s, 2 s, 4 s and so on up to an hour, and at once when
it calls; the metric \`hearth_appservice_failures\` says which are away. Events are kept for it however long it is away; what else it asks for
is in \`appservice_news\`: the newest of each user and room, and messages to devices, at most ${MAX_APPSERVICE_NEWS.toLocaleString('en')} of each kind, for ${APPSERVICE_NEWS_KEPT_MS / 86_400_000} days.

Events of encrypted rooms go out as they are: encrypted. A bridge that is to read them makes devices, by
\`m.login.application_service\` or \`PUT devices/{deviceId}\`, and either syncs for the messages to them or is sent these in transactions.
With \`org.matrix.msc3202\` it says that it lives on transactions: then messages to accounts that it made are in no sync, and are removed
once it has answered.

A service with \`url: null\` and \`hosted: <module>\` runs in this process: the module exports \`createHostedService\`, as
\`examples/echo\` shows. Whoever has its \`hs_token\` may ask it over HTTP: ${servedOf(appservice)} operations are served.

## Health

| path | answer |
|---|---|
| \`/health/live\` | 200 while the process runs |
| \`/health/ready\` | 200 when requests can be served; 503 with the reason while starting, migrating, draining, or while the database is away |

Both are on the listener for clients and on the one for metrics, which is up before the database is.

## Metrics

\`/metrics\` on \`metrics.host\`:\`metrics.port\`, in the text format of Prometheus. Names that begin with \`synapse_\` mean what existing
dashboards take them to mean; besides these there are the usual ones of Node.js (\`nodejs_\`, \`process_\`).

${await metricTable()}

## Stopping

On SIGTERM or SIGINT the server becomes unready, accepts no new connections, ends long polls with 200, lets requests finish for up
to 7 s, and stops its Postgres. \`kill -9\` loses nothing that was acknowledged; the next start needs no help.

## Exit codes

| code | meaning |
|---|---|
${codes.join('\n')}
`
}

/** How many of these operations this server asks of others. */
function outgoingOf(lines: readonly string[]): string {
  const asked = new Set<string>(APPSERVICE_OPERATIONS)
  return `${lines.filter((line) => asked.has(line)).length} of ${lines.length}`
}

/** How many of these operations are served, parameters called as they may be. */
function servedOf(lines: readonly string[]): string {
  const shape = (line: string) => line.replace(/\{[^}]+\}/g, '{}')
  const known = new Set(Object.values(served).map(shape))
  return `${lines.filter((line) => known.has(shape(line))).length} of ${lines.length}`
}

function generated(title: string): string {
  return `# ${title}\n\n<!-- Made by \`npm run docs\` from the code. -->\n`
}

async function metricTable(): Promise<string> {
  const text = await createMetrics({ version: '', node: '' }).text()
  const rows = [...text.matchAll(/^# HELP (\w+) (.*)$/gm)].map(([, name, help]) => `| \`${name}\` | ${help} |`)
  return ['| name | meaning |', '|---|---|', ...rows].join('\n')
}
