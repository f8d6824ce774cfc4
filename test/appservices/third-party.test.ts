import { pino } from 'pino'
import { expect, it } from 'vitest'
import type { Appservice } from '../../src/domain/appservices/appservice.ts'
import { createThirdParty } from '../../src/domain/appservices/third-party.ts'
import type { AppserviceAnswer } from '../../src/outbound/appservice.ts'
import { waitUntil } from '../support/wait.ts'

type Parts = Parameters<typeof createThirdParty>[0]

/** What a server has of services that provide a protocol each. */
function partsOf(names: readonly string[]): Pick<Parts, 'registry' | 'hosted' | 'log'> {
  const services = names.map((name) => {
    const registration = { url: `http://${name}.test`, hs_token: name, protocols: [name] }
    return { id: name, registration } as unknown as Appservice
  })
  return {
    registry: { all: () => services } as unknown as Parts['registry'],
    hosted: { ask: () => undefined } as unknown as Parts['hosted'],
    log: pino({ level: 'silent' }),
  }
}

const describedAs = (icon: string): AppserviceAnswer => {
  const body = { user_fields: [], location_fields: [], icon, field_types: {}, instances: [] }
  return { kind: 'answered', status: 200, body, text: '' }
}
const NOTHING: AppserviceAnswer = { kind: 'unanswered', isTimeout: true, detail: 'nothing came' }
const LONGER_THAN_KEPT_MS = 61_000

it('the list of protocols waits for no service for long, and knows what each said last', async () => {
  let now = 0
  const asked: { path: string; answer(answer: AppserviceAnswer): void }[] = []
  const thirdParty = createThirdParty({
    ...partsOf(['good', 'hanging']),
    client: {
      ask: (_target, { path }) => new Promise((answer) => asked.push({ path, answer })),
      tell: () => Promise.reject(new Error('nobody is told')),
    },
    clock: { now: () => now },
    waitMs: 1,
  })
  const iconsOf = async () => {
    const all = await thirdParty.protocols()
    return Object.entries(all).map(([name, { icon }]) => `${name}: ${icon}`)
  }
  const answer = (protocol: string, given: AppserviceAnswer) => {
    const index = asked.findIndex(({ path }) => path.endsWith(`/${protocol}`))
    asked.splice(index, 1)[0]!.answer(given)
  }
  const first = iconsOf()
  answer('good', describedAs('one'))
  expect(await first).toEqual(['good: one'])
  // What comes late is there for the next one, and nobody is asked twice.
  answer('hanging', describedAs('two'))
  await waitUntil('the late answer', async () => (await iconsOf()).length === 2)
  expect(asked).toEqual([])
  now += LONGER_THAN_KEPT_MS
  expect(await iconsOf()).toEqual(['good: one', 'hanging: two'])
  answer('good', describedAs('three'))
  answer('hanging', NOTHING)
  await waitUntil('the new answer', async () => (await iconsOf())[0] === 'good: three')
  expect(await iconsOf()).toEqual(['good: three', 'hanging: two'])
})

it('who asks for one protocol waits for a service that is slow', async () => {
  let answer = (_given: AppserviceAnswer): void => {}
  const thirdParty = createThirdParty({
    ...partsOf(['slow']),
    client: {
      ask: () => new Promise((given) => (answer = given)),
      tell: () => Promise.reject(new Error('nobody is told')),
    },
    clock: { now: () => 0 },
    waitMs: 1,
  })
  const asking = thirdParty.protocol('slow')
  expect(await thirdParty.protocols()).toEqual({})
  answer(describedAs('one'))
  expect(await asking).toMatchObject({ icon: 'one' })
})

it('a service that does not answer is not asked again at once', async () => {
  let now = 0
  let asked = 0
  const thirdParty = createThirdParty({
    ...partsOf(['away']),
    client: {
      async ask() {
        asked++
        return NOTHING
      },
      tell: () => Promise.reject(new Error('nobody is told')),
    },
    clock: { now: () => now },
  })
  for (let times = 0; times < 3; times++) expect(await thirdParty.protocols()).toEqual({})
  expect(asked).toBe(1)
  now += LONGER_THAN_KEPT_MS
  await expect(thirdParty.protocol('away')).rejects.toMatchObject({ errcode: 'M_NOT_FOUND' })
  expect(asked).toBe(2)
})
