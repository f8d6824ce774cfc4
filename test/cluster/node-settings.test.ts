import { expect, it } from 'vitest'
import { createLiveConfig } from '../../src/config/live.ts'
import { loadConfig } from '../../src/config/load.ts'
import { OPTIONS } from '../../src/config/options.ts'
import { sharedValues } from '../../src/config/shared-options.ts'
import { differingOptions, settingsOf } from '../../src/domain/cluster/node-settings.ts'

const SECRET = 'a secret that all nodes of a test have'
const configOf = (values: object, directory = '/x') => loadConfig({ values, directory }).config
const said = (values: object, directory?: string) => settingsOf(configOf(values, directory), sharedValues, SECRET)()
const differ = (one: object, other: object) => differingOptions(said(one), said(other))

it('nodes share each option that is not marked as one of a node', () => {
  const own = OPTIONS.filter(({ isOfNode, holds }) => isOfNode && holds === undefined).map(({ key }) => key)
  const sections = ['listen', 'https', 'database', 'cluster', 'log', 'metrics', 'tracing']
  // Who adds one here has thought of what users see when the other node answers them.
  expect(own.filter((key) => !sections.includes(key.split('.')[0]!)).sort()).toEqual([
    'calls.livekit.api_url',
    'data_dir',
    'identity.mail.smtp.helo_name',
    'limits.max_connections',
    'limits.max_connections_per_address',
    'media.reserved_disk_bytes',
    'outbound.ca_file',
    'outbound.no_proxy',
    'outbound.proxy',
    'trusted_proxies',
  ])
  expect(own.filter((key) => sections.includes(key.split('.')[0]!))).toEqual(
    OPTIONS.filter(({ key, holds }) => holds === undefined && sections.includes(key.split('.')[0]!)).map(
      ({ key }) => key,
    ),
  )
})

it('what users see in different ways is found', () => {
  expect(differ({ rate_limits: { enabled: false } }, {})).toEqual(['rate_limits.enabled'])
  expect(differ({ profiles: { visible_to: 'users' } }, { profiles: { visible_to: 'neighbours' } })).toEqual([
    'profiles.visible_to',
  ])
  expect(differ({ registration: { token: 'one' } }, { registration: { token: 'two' } })).toEqual(['registration.token'])
  const provider = { id: 'a', name: 'A', issuer: 'https://a.example', client_id: 'c', client_secret: 'one' }
  const sso = (client_secret: string) => ({ sso: { providers: [{ ...provider, client_secret }] } })
  expect(differ(sso('one'), sso('two'))).toEqual(['sso.providers'])
  expect(differ(sso('one'), sso('one'))).toEqual([])
})

it('what is of a machine may differ, and where a file is; but not whether there is one', () => {
  const one = { listen: { port: 1 }, data_dir: '/one', limits: { max_connections: 200 } }
  expect(differingOptions(said(one, '/x'), said({ database: { pool_size: 9 } }, '/y'))).toEqual([])
  const templates = (templates_dir: string) => ({ identity: { templates_dir } })
  expect(differ(templates('/one'), templates('/two'))).toEqual([])
  expect(differ(templates('/one'), {})).toEqual(['identity.templates_dir'])
  const bridges = (...registrations: string[]) => ({ application_services: { registrations } })
  expect(differ(bridges('/one.yaml', '/two.yaml'), bridges('/both'))).toEqual([])
  expect(differ(bridges('/one.yaml'), bridges())).toEqual(['application_services.registrations'])
})

it('nothing is said of the values, and an option that only one release knows counts as different', () => {
  const text = said({ registration: { token: 'canary', shared_secret: 'canary-canary-canary' } })
  expect(text).not.toContain('canary')
  const other = settingsOf(configOf({ registration: { token: 'canary' } }), sharedValues, 'another secret')()
  expect(text).not.toContain(JSON.parse(other)['registration.token'])
  expect(differingOptions('{}', '{"new.option":"x"}')).toEqual(['new.option'])
})

it('an option that changes while the server runs is said as it is then', () => {
  const live = createLiveConfig(configOf({}))
  const settings = settingsOf(live.config, sharedValues, SECRET)
  const before = settings()
  expect(settings()).toBe(before)
  live.use(configOf({ rate_limits: { enabled: false } }))
  expect(differingOptions(before, settings())).toEqual(['rate_limits.enabled'])
})
