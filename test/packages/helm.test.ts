import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { layerOfEnvironment, layerOfFile, layerOfValues } from '../../src/config/layers.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { Json } from '../support/api.ts'
import { PROJECT_ROOT } from '../support/project.ts'

const CHART = join(PROJECT_ROOT, 'contrib/helm/hearth')
const read = (name: string) => readFileSync(join(CHART, name), 'utf8')

const folder = mkdtempSync(join(tmpdir(), 'hearth-chart-'))
afterAll(() => rmSync(folder, { recursive: true }))

test('what the chart sets by itself are options that there are', () => {
  const { config } = parse(read('values.yaml')) as { config: object }
  expect(layerOfValues(config).problems).toEqual([])
  const set = [...read('templates/statefulset.yaml').matchAll(/name: (HEARTH__\w+)\n +value: (.*)/g)]
  expect(set.length).toBeGreaterThan(3)
  const env = Object.fromEntries(set.map(([, name, value]) => [name!, value!.replaceAll('"', '')]))
  expect(layerOfEnvironment(env).problems).toEqual([])
  const inFile = [...read('templates/_names.tpl').matchAll(/(?:dict|set \$own) "(\w+)"/g)].map(([, name]) => name!)
  const known = new Set(
    layerOfValues({ server_name: 'a', public_base_url: 'b' }).assignments.map(({ option }) => option.key),
  )
  expect(inFile.filter((name) => name !== 'option' && !known.has(name))).toEqual([])
})

test('every value that a template reads has a default', () => {
  const values = parse(read('values.yaml')) as Json
  const texts = readdirSync(join(CHART, 'templates')).map((name) => read(`templates/${name}`))
  const used = new Set(texts.flatMap((text) => [...text.matchAll(/\.Values\.([\w.]+)/g)].map(([, path]) => path!)))
  expect(used.size).toBeGreaterThan(15)
  const missing = [...used].filter((path) => path.split('.').reduce((value, key) => value?.[key], values) === undefined)
  expect(missing).toEqual([])
})

/** Helm, where it is installed: `go install helm.sh/helm/v3/cmd/helm@v3.18.6`. */
const helm = process.env.HELM ?? 'helm'
const hasHelm = spawnSync(helm, ['version']).status === 0

const VALUES = {
  serverName: 'example.org',
  publicBaseUrl: 'https://matrix.example.org',
  database: { existingSecret: 'postgres' },
  secrets: { 'identity.mail.smtp.password': { name: 'mail', key: 'password' } },
  ingress: { enabled: true, hosts: ['matrix.example.org'] },
  config: {
    trusted_proxies: ['10.42.7.0/24'],
    registration: { enabled: true },
    identity: { mail: { smtp: { host: 'mail.example.org' } } },
  },
}

function render(values: object): Json[] {
  const file = join(folder, 'values.json')
  writeFileSync(file, JSON.stringify(values))
  const text = execFileSync(helm, ['template', 'chat', CHART, '--values', file], { encoding: 'utf8', stdio: 'pipe' })
  return parseAllDocuments(text).map((document) => document.toJS())
}

test.skipIf(!hasHelm)('what Helm renders is a configuration that Hearth starts with, and fits together', () => {
  const things = render(VALUES)
  const named = (kind: string) => things.filter((thing) => thing.kind === kind)
  const [container] = named('StatefulSet')[0].spec.template.spec.containers
  const env = Object.fromEntries(container.env.map((each: Json) => [each.name, each.value]))
  expect(layerOfEnvironment(env).problems).toEqual([])
  const text = named('ConfigMap')[0].data['hearth.yaml']
  expect(layerOfFile('hearth.yaml', text).problems).toEqual([])

  const plain = Object.fromEntries(Object.entries(env).filter(([name]) => !name.endsWith('_FILE')))
  const { config } = loadConfig({
    file: { path: 'hearth.yaml', text },
    env: plain as Record<string, string>,
    directory: '/',
  })
  expect(config).toMatchObject({
    server_name: 'example.org',
    public_base_url: 'https://matrix.example.org',
    data_dir: '/data/hearth',
    listen: { host: '0.0.0.0', port: container.ports[0].containerPort },
    metrics: { port: container.ports[1].containerPort },
  })
  const mounted = named('StatefulSet')[0].spec.template.spec.volumes.find((each: Json) => each.name === 'secrets')
  const files = mounted.projected.sources.map(({ secret }: Json) => `/secrets/${secret.items[0].path}`)
  expect(Object.values(env)).toEqual(expect.arrayContaining(files))
  expect(named('StatefulSet')[0].spec.replicas).toBe(1)
  expect(named('Ingress')[0].spec.rules[0].http.paths[0].backend.service.name).toBe(named('Service')[0].metadata.name)
})

test.skipIf(!hasHelm)(
  'without a name of the server nothing is rendered, nor with an ingress that nobody says to trust',
  () => {
    expect(() => render({})).toThrow(/serverName must be set/)
    const { trusted_proxies: _, ...config } = VALUES.config
    expect(() => render({ ...VALUES, config })).toThrow(/config.trusted_proxies must be set/)
  },
)

test('the chart believes no address by itself', () => {
  expect((parse(read('values.yaml')) as Json).config.trusted_proxies).toEqual([])
})
