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
import { MUSTS_OF_OAUTH } from '../test/conformance/oauth.ts'
import served from '../test/conformance/operations.json' with { type: 'json' }
import { type Proofs, readProofs } from '../test/conformance/proofs.ts'
import { PUBLISHED, WITHOUT_FEATURE } from '../test/conformance/published.ts'
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
An error answer has the status below and the body \`{"errcode": "M_...", "error": "what happened, in words"}\`; some have
further keys, such as \`retry_after_ms\`. Where the specification says so, an endpoint uses another status. The column "where" lists the
folders of \`src/\` that name the code. The column "shown" names an operation that answers it and its test, for each code that the
description of the client interface lists.

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
Black-box checks, unmodified clients, two acceptance suites and an attacker found these requirements. Below each stand its tests, whose
titles begin with its id. A to E stand for availability, rooms and encryption, compatibility, operators, and bad input.

${sections.join('\n\n')}

## What the standards of OAuth demand

| # | Source | Must | Test |
|---|---|---|---|
${MUSTS_OF_OAUTH.map(({ source, must, file }, index) => `| ${index + 1} | ${source} | ${must} | \`${file}\` |`).join('\n')}
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

The configuration is one YAML file: the one that \`--config\` or \`HEARTH_CONFIG\` names, else \`hearth.yaml\` in the working directory, else
none. A value comes from the last of these that has one: built-in default, file, environment, \`--set KEY=VALUE\`. The variable of
\`listen.port\` is \`HEARTH__LISTEN__PORT\`. A secret may be in a file of its own: \`database.url_file\` or \`HEARTH__DATABASE__URL_FILE\`. With
an unknown key or a bad value the server does not start; it prints file, line, the expected value and the nearest known key.
\`hearth config check\` finds all such mistakes, and \`hearth config print\` prints the resulting configuration. With \`config/schema.json\` an
editor can complete and check the file.

${optionTable()}

## Database

Without \`database.url\` the server runs its own Postgres in \`<data_dir>/postgres\`: it listens on a unix socket only, with \`fsync\` and
\`synchronous_commit\` on. It stops with the server, even if the server is killed, and is started again if it dies. If the server runs as
root, this Postgres runs as the user \`nobody\`. With \`database.url\` the server uses that Postgres (14 or later) and migrates its tables
at the start.

## Passwords of a directory

\`\`\`yaml
ldap:
  url: ldaps://ldap.example.org
  base_dn: ou=people,dc=example,dc=org
  bind_dn: cn=hearth,dc=example,dc=org     # without it, people are expected at uid=<name>,<base_dn>
  bind_password_file: /run/secrets/hearth-ldap
  filter: (memberOf=cn=matrix,ou=groups,dc=example,dc=org)
\`\`\`

A password that does not fit an account here is tried in the directory. Who has none gets an account at the first sign-in. An account that
was made otherwise stays with its owner, unless you set \`allow_existing_users\`. While the directory does not answer, people with passwords here
can sign in, others are asked to wait, and the log says why. People who leave the directory keep their sessions: end them as an administrator.

## Calls

Calls of two need a TURN server, for people behind NAT and firewalls. With coturn:

\`\`\`
use-auth-secret
static-auth-secret=a-long-random-sentence
realm=turn.example.org
no-multicast-peers
denied-peer-ip=10.0.0.0-10.255.255.255     # and your other private ranges, so that nobody reaches your network through it
\`\`\`

\`\`\`yaml
calls:
  turn:
    uris: ['turn:turn.example.org:3478?transport=udp', 'turns:turn.example.org:5349?transport=tcp']
    shared_secret_file: /run/secrets/turn
  livekit:
    url: wss://livekit.example.org
    api_url: http://127.0.0.1:7880
    api_key: hearth
    api_secret_file: /run/secrets/livekit
\`\`\`

Calls of groups (Element Call) need a LiveKit server with \`keys: {hearth: <the secret>}\` and \`room: {auto_create: false}\`. No authorisation service
is needed beside it: Hearth is one, under \`/_hearth/livekit\`, and tells clients so. Your proxy must pass this path, and others must reach your
server for \`/_matrix/federation/v1/openid/userinfo\`, because LiveKit servers elsewhere ask it who your users are. A client must be in the room of the call;
users of other servers may join a call, and begin one only if \`full_access_servers\` names their server. \`hearth doctor\` asks the TURN servers
for an allocation, and LiveKit whether it is there.

## Single sign-on

People can sign in with accounts of any service that speaks OpenID Connect. Register a web client there, with the redirect address
\`<public_base_url>/_hearth/sso/callback\`; \`public_base_url\` must be the address that browsers use.

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

An account is tied to the provider's \`id\` and to the service's own id of the person (\`sub\`), in the table \`user_external_id\`; the person's
name and address may change there. If the name from the template is taken or not valid, the person chooses one. For a service in your own
network, set \`outbound.allow_ranges\`. People are asked for consent before they return to a client, unless it is in \`trusted_clients\`. When a
sign-in fails at a provider, the log says why, without the provider's answer. When a provider ends a session, the sessions here continue: end them
with \`logout_all\` in the client or as an administrator.

## Identity service

It runs beside the homeserver, on the same database, unless \`roles\` says otherwise; \`hearth serve
--roles identity\` runs it alone, with a database of its own. Users of every homeserver may register, with a token that their
homeserver confirms. ${servedOf(identity)} operations of the interface, in both of its versions, are served.

Policies are a list. The server shows a text without \`url\` itself, from \`identity.terms.directory\`, and checks at the start that the file
exists. Users may use the service once they have accepted every policy, each in any of its languages; others get
\`M_TERMS_NOT_SIGNED\`. The table \`identity_accepted_url\` records who accepted what, and when.

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
\`identity.outbox\`, and the log has their names. If a mail server refuses a mail, does not answer, or has no valid certificate, the request
fails with \`M_EMAIL_SEND_ERROR\`; the client may repeat it. The log says why, without the address.

A template is the file \`<brand>/<language>/<name>\` in \`identity.templates_dir\`. The client names the brand (\`?brand=\`) and the
languages (\`?lang=\` or \`Accept-Language\`). The server looks for the brand in each wanted language and in English, then for the brand
\`default\` in the same languages, then for its built-in template. It reads all templates at the start, and does not start if one has a mistake.

| template | values |
|---|---|
${Object.entries(TEMPLATE_VALUES)
  .map(([name, values]) => `| \`${name}\` | ${values.map((value) => `\`${value}\``).join(', ')} |`)
  .join('\n')}

A \`.mail\` begins with headers (\`From\` and \`Subject\` among them), then an empty line, then \`--- text\` and \`--- html\` with the parts.
\`{{name}}\` is a value, escaped for its place; \`{{name | filter}}\` uses another filter: \`html\`, \`json\`, \`header\`, \`name\` (before an
address), \`url\` or \`text\` (unescaped). \`{{#name}}...{{/name}}\` is kept if the value is not empty, \`{{^name}}...{{/name}}\` if it is empty.
A mail must contain its link or its token, a text message its token. \`hearth identity preview-mail\` prints the finished message.

### Pages

Every web page is a template too, in the same folders, of the brand \`default\`. The browser's languages
(\`Accept-Language\`) select the template as they do for mails; German and English are built in. To change a page, copy it from
\`templates/default/en\` of this release to the same place in \`identity.templates_dir\` and edit it; to add a language, do so for
each page. \`hearth identity preview-page NAME --language TAG > page.html\` renders one, and \`hearth identity preview-page --help\` lists them.

A \`.page\` begins with \`Heading:\`, and optionally \`Subheading:\` and \`Footer:\`; after an empty line follows HTML.
\`errors.txt\` says errors in the language of a page: a line for each, the server's own sentence, \` = \` and what a person reads. \`en/errors.txt\` says more.

\`frame.html\` is around every page. It holds the style and the flame, which you may replace by an SVG of your own. The frame in
\`default/en\` is used for all languages that have none.

The start and \`hearth config check\` read and check all of them, and name file and line of a mistake: a value that is not in this table, a
missing value of those in bold, a missing form field, a \`<script>\`, an attribute whose value has no quotes, a
file of more than ${MAX_TEMPLATE_BYTES / 1024} KiB. Values are escaped, with \`html\` or \`url\`. Pages cannot run scripts or load anything: their
Content-Security-Policy forbids it. Put styles into the frame's \`<style>\`; attributes \`style=\` have no effect.

\`{{form}}\` begins the page's form, with its hidden fields; close it with \`</form>\`. \`{{#name}}...{{/name}}\` around a list
(\`choices\`, \`languages\`, \`policies\`, \`texts\`) is repeated for each item. \`problem\` says in English what was wrong with a form.
Values such as \`m_forbidden\` are set if the form failed with that code, \`other_problem\` if it failed with a code that has no value.

| template | values, beside \`brand\` and \`server_name\` |
|---|---|
| \`frame.html\` | ${FRAME_RULES.values.map((value) => shownValue(value, FRAME_RULES)).join(', ')} |
${PAGE_NAMES.map((name) => `| \`${name}\` | ${pageValues(name)} |`).join('\n')}

### Lookup and invitations

Clients hash addresses with a pepper. It is replaced when it is \`identity.lookup.pepper_hours\` old, or by \`hearth identity
rotate-pepper\`, with the server running or stopped. Lookups continue meanwhile. The next server or command finishes an interrupted
rotation. Only the operator can list the addresses of a user (\`hearth identity show\`), and the tables have no index for that.

When a user binds an address, the identity service tells the user's homeserver about the invitations to it. If that fails, it tries again
after 5 seconds, then after twice as long, up to an hour, for \`identity.invites.delivery_days\`. Pending deliveries are in the table
\`identity_delivery\`; one with \`due_at\` NULL was given up, until the address is bound again. \`hearth identity invitations\` lists pending
invitations and cancels one. Invitations expire after \`identity.invites.lifetime_days\`.

Lookups of hashes are answered from memory. The first one makes the server read all bindings, 70 MB for a million (twice that while the
pepper is replaced); a quarter of an hour without lookups frees the memory. Until the bindings are read, and if there are more than
${MAX_BINDINGS_IN_MEMORY.toLocaleString('en')}, the database answers.

## Application services

A registration file describes a bridge or bot. \`application_services.registrations\` names the file or its directory. Its keys are
\`id\`, \`url\`, \`as_token\`, \`hs_token\`, \`sender_localpart\`, \`namespaces\`, and optionally \`rate_limited\` (its users have no
limits unless this is true), \`protocols\`, \`receive_ephemeral\` (typing, receipts, presence, and messages to devices of its
users) and \`org.matrix.msc3202\` (changed device lists, and key counts of its users' devices). Expressions of namespaces
match from the beginning of an id, and need not match its end; look-ahead and back references are refused. A changed file takes effect
within seconds; for a file with a mistake, the log names the line and the old registration stays. \`hearth config check\` reads registrations too.

The server uses ${outgoingOf(appservice)} operations of services. It calls an old service at the paths without a version, and tries the
new paths once an hour. If a service does not answer, it gets the same transaction again after 1 s, 2 s, 4 s and so on up to an hour, and at once
when it calls; the metric \`hearth_appservice_failures\` shows services that are away. Its events are kept however long it is away. Its other
news is in \`appservice_news\`: the newest of each user and room, and messages to devices, at most ${MAX_APPSERVICE_NEWS.toLocaleString('en')} of each kind, for ${APPSERVICE_NEWS_KEPT_MS / 86_400_000} days.

Events of encrypted rooms are sent to services encrypted. A bridge that needs to read them creates devices, with
\`m.login.application_service\` or \`PUT devices/{deviceId}\`, and receives the messages to these devices by sync or in transactions.
With \`org.matrix.msc3202\` a bridge declares that it uses transactions only: messages to the accounts that it created then appear in no sync,
and are removed once it has answered.

A service with \`url: null\` and \`hosted: <module>\` runs in this process: the module exports \`createHostedService\`, as
\`examples/echo\` shows. With its \`hs_token\` it can also be called over HTTP: ${servedOf(appservice)} operations are served.

## Health

| path | answer |
|---|---|
| \`/health/live\` | 200 while the process runs |
| \`/health/ready\` | 200 when requests can be served; 503 with the reason while starting, migrating, draining, or while the database is away |

The client listener and the metrics listener serve both. The metrics listener starts before the database.

## Metrics

\`/metrics\` on \`metrics.host\`:\`metrics.port\`, in the text format of Prometheus. Metrics whose names begin with \`synapse_\` fit existing
dashboards. The usual metrics of Node.js (\`nodejs_\`, \`process_\`) are there too.

${await metricTable()}

## Stopping

On SIGTERM or SIGINT the server becomes unready, accepts no new connections, ends long polls with 200, lets requests finish for up
to 7 s, and stops its Postgres. \`kill -9\` loses nothing that was acknowledged, and the next start needs no repair.

## Exit codes

| code | meaning |
|---|---|
${codes.join('\n')}

## Operations of the published interface

${await publishedTable()}
`
}

/** Every published operation, with the test file in which it succeeds. */
async function publishedTable(): Promise<string> {
  const proofs = await readProofs()
  const rows = PUBLISHED.map((line) => `| \`${line}\` | ${answerOf(line, proofs)} |`)
  const done = PUBLISHED.filter((line) => proofs[line] !== undefined || WITHOUT_FEATURE[line] !== undefined)
  return `Of the ${PUBLISHED.length} operations of all published releases, client-server, server-server, identity, application service and push
gateway together, ${done.length} are implemented, or answered as the specification says for servers without the feature. Each is named once, by its first
path; \`r0\` and \`v3\` are the same here. Beside it stands a test file in which it succeeds: the run of all tests checks that it does.

| operation | test |
|---|---|
${rows.join('\n')}`
}

function answerOf(line: string, proofs: Proofs): string {
  const proof = proofs[line]
  return proof === undefined ? (WITHOUT_FEATURE[line] ?? 'not implemented') : `\`${proof}\``
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
