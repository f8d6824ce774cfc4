import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { layerOfEnvironment } from '../../src/config/layers.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { Json } from '../support/api.ts'
import { PROJECT_ROOT } from '../support/project.ts'

const read = (name: string) => readFileSync(join(PROJECT_ROOT, name), 'utf8')
const { version } = JSON.parse(read('package.json')) as { version: string }

/** What the image sets by itself. */
const image = Object.fromEntries(
  [...read('Dockerfile').matchAll(/(HEARTH__\w+)=(\S+)/g)].map(([, name, value]) => [name!, value!]),
)

const FILES = ['contrib/compose/compose.yaml', 'contrib/compose/with-postgres.yaml']

test.each(FILES)('%s sets options that there are, and agrees with the image', (file) => {
  const project = parse(read(file)) as Json
  const { hearth } = project.services
  expect(layerOfEnvironment(hearth.environment).problems).toEqual([])
  const plain = Object.entries({ ...image, ...hearth.environment } as Record<string, string>)
  const env = Object.fromEntries(plain.filter(([name]) => !name.endsWith('_FILE')))
  const { config } = loadConfig({ env, directory: '/' })

  const [published, target] = /^127\.0\.0\.1:(\d+):(\d+)$/.exec(hearth.ports[0])!.slice(1)
  expect([Number(published), Number(target)]).toEqual([config.listen.port, config.listen.port])
  expect(read('Dockerfile')).toContain(`EXPOSE ${config.listen.port}\n`)
  expect(hearth.healthcheck.test.at(-1)).toContain(`:${config.listen.port}/health/ready`)
  // What is outside of the volumes does not outlive the container, and cannot be written.
  expect(hearth.read_only).toBe(true)
  expect(hearth.volumes.map((each: string) => each.split(':')[1])).toEqual([config.data_dir])
  expect(hearth.image).toBe(`hearth:${version}`)
})

test.each(FILES)('%s has every volume and secret that it uses, and images of one version', (file) => {
  const project = parse(read(file)) as Json
  for (const service of Object.values<Json>(project.services)) {
    expect(service.image).toMatch(/^[a-z]+:\d+\.\d+/)
    for (const volume of service.volumes) expect(Object.keys(project.volumes)).toContain(volume.split(':')[0])
    const files = Object.entries<string>(service.environment).filter(([name]) => name.endsWith('_FILE'))
    expect(files.map(([, path]) => path)).toEqual((service.secrets ?? []).map((name: string) => `/run/secrets/${name}`))
    for (const name of service.secrets ?? []) expect(project.secrets[name].file).toBe(`./secrets/${name}`)
  }
})

test('the Postgres beside it is new enough, and a database that Hearth can open', () => {
  const { services } = parse(read('contrib/compose/with-postgres.yaml')) as Json
  const { POSTGRES_USER: user, POSTGRES_DB: database } = services.postgres.environment
  expect(read('contrib/compose/with-postgres.yaml')).toContain(
    `postgres://${user}:$(cat secrets/postgres-password)@postgres/${database}"`,
  )
  expect(Number(/^postgres:(\d+)/.exec(services.postgres.image)![1])).toBeGreaterThanOrEqual(14)
})
