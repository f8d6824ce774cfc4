import { afterAll, beforeAll, expect, it } from 'vitest'
import { type House, openHouse, type Person } from '../rooms/people.ts'
import type { Json } from '../support/api.ts'
import { deviceMaker } from './key-maker.ts'

let house: House
let alice: Person

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
})
afterAll(() => house.close())

const SIGNED = 'signed_curve25519'
const claim = (of: Person): Promise<Json> =>
  alice.call('POST', '/keys/claim', { one_time_keys: { [of.userId]: { [of.deviceId]: SIGNED } } })
const countsOf = (answer: Json) => [answer.device_one_time_keys_count, answer.device_unused_fallback_key_types]

it('counts are in every sync, zero for a device that has none', async () => {
  expect(countsOf(await alice.sync())).toEqual([{ [SIGNED]: 0 }, []])
})

it('counts are those of the device, follow uploads and claims down to zero, and name fallback keys until they are used', async () => {
  const bob = await house.person('bob')
  const maker = deviceMaker(bob)
  const fallback = maker.named(`${SIGNED}:f`)
  await bob.call('POST', '/keys/upload', { one_time_keys: maker.keys(2), fallback_keys: fallback })
  let { next_batch: since, ...first } = await bob.sync()
  expect(countsOf(first)).toEqual([{ [SIGNED]: 2 }, [SIGNED]])
  for (const expected of [
    [{ [SIGNED]: 1 }, [SIGNED]],
    [{ [SIGNED]: 0 }, [SIGNED]],
    [{ [SIGNED]: 0 }, []],
  ]) {
    await claim(bob)
    const answer = await bob.sync(`&since=${since}`)
    expect(countsOf(answer)).toEqual(expected)
    since = answer.next_batch
  }
  await bob.call('POST', '/keys/upload', { fallback_keys: fallback })
  expect(countsOf(await bob.sync(`&since=${since}`))).toEqual([{ [SIGNED]: 0 }, []])
  await bob.call('POST', '/keys/upload', { fallback_keys: maker.named(`${SIGNED}:g`) })
  expect(countsOf(await bob.sync(`&since=${since}`))).toEqual([{ [SIGNED]: 0 }, [SIGNED]])
})

it('a long poll wakes for each key that is claimed, and for the first use of a fallback key', async () => {
  const carol = await house.person('carol')
  const maker = deviceMaker(carol)
  await carol.call('POST', '/keys/upload', {
    one_time_keys: maker.keys(1),
    fallback_keys: maker.named(`${SIGNED}:f`),
  })
  let { next_batch: since } = await carol.sync()
  for (const expected of [
    [{ [SIGNED]: 0 }, [SIGNED]],
    [{ [SIGNED]: 0 }, []],
  ]) {
    const begun = performance.now()
    const waiting = carol.call('GET', `/sync?timeout=30000&since=${since}`)
    await claim(carol)
    const answer = await waiting
    expect(performance.now() - begun).toBeLessThan(25_000)
    expect(countsOf(answer)).toEqual(expected)
    since = answer.next_batch
  }
})

it('counts survive a restart', async () => {
  const dan = await house.person('dan')
  await dan.call('POST', '/keys/upload', { one_time_keys: deviceMaker(dan).keys(3) })
  const { next_batch: since } = await dan.sync()
  await claim(dan)
  await house.restart()
  expect(countsOf(await dan.sync(`&since=${since}`))).toEqual([{ [SIGNED]: 2 }, []])
})
