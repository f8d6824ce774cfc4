import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import { configDifferences, ownValues } from '../../src/config/difference.ts'
import { createLiveConfig } from '../../src/config/live.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { Config } from '../../src/config/schema.ts'

const configOf = (values: object): Config => loadConfig({ values, directory: tmpdir() }).config

test('what counts at once is taken over, the rest is named and stays', () => {
  const live = createLiveConfig(configOf({ listen: { port: 1 }, rate_limits: { message: { burst: 7 } } }))
  const { config } = live
  const next = configOf({ listen: { port: 2 }, rate_limits: { message: { burst: 9 } }, log: { level: 'debug' } })
  expect(live.use(next)).toEqual({
    applied: ['log.level', 'rate_limits.message.burst'],
    needRestart: ['listen.port'],
  })
  expect(config.rate_limits.message.burst).toBe(9)
  expect(config.log.level).toBe('debug')
  expect(config.listen.port).toBe(1)
  expect(live.use(next)).toEqual({ applied: [], needRestart: ['listen.port'] })
})

test('a value can come and go', () => {
  const live = createLiveConfig(configOf({}))
  live.use(configOf({ registration: { token: 'abc' } }))
  expect(live.config.registration.token).toBe('abc')
  live.use(configOf({}))
  expect('token' in live.config.registration).toBe(false)
})

test('it is frozen, and a copy holds the values of its moment', () => {
  const live = createLiveConfig(configOf({}))
  const copy = { ...live.config }
  live.use(configOf({ log: { level: 'error' } }))
  expect([copy.log.level, live.config.log.level]).toEqual(['info', 'error'])
  expect(() => Object.assign(live.config, { log: {} })).toThrow()
  expect(() => Object.assign(live.config.log, { level: 'x' })).toThrow()
})

test('differences and own values show no secret, also none in lists; that one differs is shown', () => {
  const sso = (secret: string) => ({
    sso: { providers: [{ id: 'x', name: 'X', issuer: 'https://x.test', client_id: 'c', client_secret: secret }] },
  })
  const one = configOf({ database: { url: 'postgres://u:canary1@h/d' }, ...sso('canary2') })
  const other = configOf({ database: { url: 'postgres://u:canary3@h/d' }, ...sso('canary4') })
  const found = configDifferences(one, other)
  expect(found.map(({ key, needs_restart }) => [key, needs_restart])).toEqual([
    ['database.url', true],
    ['sso.providers', true],
  ])
  expect(JSON.stringify([found, ownValues(one)])).not.toContain('canary')
  expect(ownValues(one).map(({ key }) => key)).toEqual(expect.arrayContaining(['database.url', 'sso.providers']))
})
