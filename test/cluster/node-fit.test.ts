import { describe, expect, it } from 'vitest'
import { isServing, mustAgreeOnTime, mustFit } from '../../src/domain/cluster/node-fit.ts'
import type { NodeFacts, NodeRow } from '../../src/store/cluster/nodes.ts'

const own: NodeFacts = {
  holder: 'b',
  address: 'two:8008',
  release: '1.4.0',
  keys: 'k',
  files: 'f',
  settings: '{}',
  cluster: 'proof',
}
const other: NodeRow = {
  holder: 'a',
  address: 'one:8008',
  release: '1.4.2',
  keys: 'k',
  files: 'f',
  settings: '{}',
  cluster: 'proof',
  fence: 3,
  left_ms: 5,
}

describe('a node beside the one that serves', () => {
  it('fits with the same secret, the same keys and a release that is near', () => {
    for (const release of ['1.3.9', '1.4.0', '1.5.0-rc1'])
      expect(() => mustFit({ ...own, release }, other)).not.toThrow()
  })

  it.each([
    ['without a secret', { cluster: undefined }, 'the same cluster.secret'],
    ['with another secret', { cluster: 'guess' }, 'has another cluster.secret'],
    ['with other keys', { keys: 'l' }, 'copy signing.key and identity.key'],
    ['with files elsewhere', { files: 'g' }, 'have both mount the same directory'],
    ['of a release two steps on', { release: '1.6.0' }, 'one minor release apart'],
    ['of a release two steps back', { release: '1.2.0' }, 'one minor release apart'],
    ['of another major release', { release: '2.4.0' }, 'one minor release apart'],
    ['of no release', { release: 'main' }, 'one minor release apart'],
  ])('%s it is refused, and told what to do', (_, change, advice) => {
    expect(() => mustFit({ ...own, ...change }, other)).toThrow(advice)
    expect(() => mustFit({ ...own, ...change }, other)).toThrow('the node at one:8008')
  })

  it('serves while its lease lasts; a process alone has none', () => {
    expect(isServing(other)).toBe(true)
    expect(isServing({ ...other, left_ms: 0 })).toBe(false)
    expect(isServing({ ...other, cluster: null })).toBe(false)
    expect(isServing(undefined)).toBe(false)
  })
})

it('clocks may be a minute apart, and not ten', () => {
  expect(() => mustAgreeOnTime(1_000_000, 1_059_000)).not.toThrow()
  for (const [one, two] of [
    [0, 600_000],
    [600_000, 0],
  ] as const)
    expect(() => mustAgreeOnTime(one, two)).toThrow('600 s apart: have NTP set both')
})
