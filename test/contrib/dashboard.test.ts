import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { type Api, createRoom, openApi, register, sendText } from '../support/api.ts'
import { type ChildServer, startChildServer } from '../support/child-server.ts'
import { freePort } from '../support/free-port.ts'
import { PROJECT_ROOT } from '../support/project.ts'

const DASHBOARD = join(PROJECT_ROOT, 'contrib/grafana/hearth.json')
const RULES = join(PROJECT_ROOT, 'contrib/prometheus/hearth-rules.yaml')

let server: ChildServer
let api: Api
let metrics: string

/** A server that was used: messages, syncs of each kind, a file, a mistake. */
beforeAll(async () => {
  const port = await freePort()
  server = await startChildServer({
    env: {
      HEARTH__METRICS__PORT: String(port),
      HEARTH__PASSWORDS__SCRYPT__LOG2_COST: '4',
      HEARTH__REGISTRATION__ENABLED: 'true',
    },
  })
  api = openApi(server.baseUrl)
  const { token } = await register(api, 'alice')
  const { next_batch: since } = await api.call('GET', '/sync', { token })
  const room = await createRoom(api, token)
  for (let index = 0; index < 3; index++) await sendText(api, token, room, `t${index}`, `message ${index}`)
  await api.call('GET', `/sync?since=${since}`, { token })
  const path = '/_matrix/client/unstable/org.matrix.simplified_msc3575/sync'
  const body = { lists: { all: { ranges: [[0, 9]], timeline_limit: 5, required_state: [] } } }
  const { pos } = await api.call('POST', path, { token, body })
  await sendText(api, token, room, 't9', 'more')
  await api.call('POST', `${path}?pos=${pos}`, { token, body })
  metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
})
afterAll(async () => {
  await api?.close()
  await server?.dispose()
})

/** What a server has only with another set-up than this one. */
const OTHERS = new Set(['hearth_certificate_not_after_timestamp_seconds'])
/** What Prometheus itself makes. */
const OF_PROMETHEUS = new Set(['up'])
const FUNCTIONS = new Set(
  'sum by max min rate increase histogram_quantile time changes label_values and or unless on without count avg'.split(
    ' ',
  ),
)

/** The metrics that an expression of Prometheus names: words that are no functions and no labels. */
function namesIn(expression: string): string[] {
  const bare = expression
    .replace(/"(?:\\.|[^"])*"/g, '""')
    .replace(/\{[^}]*\}/g, ' ')
    .replace(/\b(by|on|without)\s*\([^)]*\)/g, ' ')
    .replace(/\[[^\]]*\]/g, ' ')
  return [...bare.matchAll(/[a-zA-Z_:][a-zA-Z0-9_:]*/g)].map(([word]) => word).filter((word) => !FUNCTIONS.has(word))
}

async function expressions(): Promise<string[]> {
  const found: string[] = []
  const look = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    for (const [key, inner] of Object.entries(value)) {
      if (key === 'expr' && typeof inner === 'string') found.push(inner)
      else look(inner)
    }
  }
  look(JSON.parse(await readFile(DASHBOARD, 'utf8')))
  look(parse(await readFile(RULES, 'utf8')))
  return found
}

test('every metric of the dashboard and of the alerts is one of a server that was used', async () => {
  const known = new Set(
    [...metrics.matchAll(/^# TYPE (\S+) (\S+)$/gm)].flatMap(([, name = '', type]) =>
      type === 'histogram' ? [name, `${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    ),
  )
  const wanted = new Set((await expressions()).flatMap(namesIn))
  expect(wanted.size).toBeGreaterThan(40)
  expect([...wanted].filter((name) => !known.has(name) && !OTHERS.has(name) && !OF_PROMETHEUS.has(name))).toEqual([])
})

test('what the panels select by label is there: sends, and each kind of sync', () => {
  const count = (line: RegExp) => Number(line.exec(metrics)?.[1] ?? 0)
  expect(
    count(/^synapse_http_server_requests_received\{method="PUT",servlet="[^"]*\/send\/[^"]*",code="200"\} (\d+)$/m),
  ).toBe(4)
  for (const kind of ['initial', 'incremental', 'sliding_initial', 'sliding'])
    expect(count(new RegExp(`^hearth_sync_seconds_count\\{kind="${kind}"\\} (\\d+)$`, 'm')), kind).toBeGreaterThan(0)
  expect(count(/^hearth_database_transaction_seconds_count (\d+)$/m)).toBeGreaterThan(0)
  expect(count(/^hearth_database_read_seconds_count\{connection="read"\} (\d+)$/m)).toBeGreaterThan(0)
  expect(count(/^hearth_cache_hits_total\{cache="sessions"\} (\d+)$/m)).toBeGreaterThan(0)
  expect(count(/^hearth_cache_hits_total\{cache="events"\} (\d+)$/m)).toBeGreaterThan(0)
})

test('no label is one of a user, a room or a server', () => {
  expect(metrics).not.toMatch(/^[^#].*(?:alice|![A-Za-z0-9]{8,})/m)
  // How many series there are depends on what was done, not on who did it.
  expect(metrics.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length).toBeLessThan(1_500)
})

test('the alert rules are good for Prometheus', async (context) => {
  const run = promisify(execFile)
  const isThere = await run('promtool', ['--version']).then(
    () => true,
    () => false,
  )
  if (!isThere) return context.skip('promtool is not installed')
  const { stdout } = await run('promtool', ['check', 'rules', RULES])
  expect(stdout).toMatch(/SUCCESS: \d+ rules found/)
})

test('each alert says what to do', async () => {
  const { groups } = parse(await readFile(RULES, 'utf8'))
  for (const { alert, annotations } of groups[0].rules) {
    expect(annotations.summary, alert).toMatch(/\.$/)
    expect(annotations.runbook, alert).toMatch(/\.$/)
  }
})
