import { describe, expect, test } from 'vitest'
import { type BanRule, compileBans, overreachingRule, readBan } from '../../../src/core/event/policy-rules.ts'

const ban = (type: string, entity: unknown, recommendation: unknown = 'm.ban') =>
  readBan(type, { entity, recommendation, reason: 'spam' } as never)
const user = (glob: string) => ban('m.policy.rule.user', glob)!
const server = (glob: string) => ban('m.policy.rule.server', glob)!
const room = (glob: string) => ban('m.policy.rule.room', glob)!
const ROOMY = { globs: 100, steps: 10_000 }
const isHeld = (...rules: BanRule[]) => overreachingRule(rules, 'home.org', 100) !== undefined

describe('rules of a policy list', () => {
  test('are read tolerantly: what is no ban counts for nothing', () => {
    expect(user('@troll:example.org')).toEqual({ entity: 'user', glob: '@troll:example.org', reason: 'spam' })
    expect(ban('org.matrix.mjolnir.rule.server', 'evil.example', 'org.matrix.mjolnir.ban')?.entity).toBe('server')
    expect(ban('m.policy.rule.user', 'x', 'm.watch')).toBeUndefined()
    expect(ban('m.policy.rule.user', 7)).toBeUndefined()
    expect(ban('m.policy.rule.user', '')).toBeUndefined()
    expect(ban('m.policy.rule.user', 'x'.repeat(10_000))).toBeUndefined()
    expect(ban('m.room.name', '@x:y')).toBeUndefined()
    expect(readBan('m.policy.rule.user', {})).toBeUndefined()
  })

  test('match ids and globs, each kind for itself', () => {
    const bans = compileBans([user('@spam*:*.example'), user('@Troll:home.org'), server('evil.example')], ROOMY)
    expect(bans.of('user', '@spam7:bad.example')?.glob).toBe('@spam*:*.example')
    expect(bans.of('user', '@troll:home.org')?.glob).toBe('@Troll:home.org')
    expect(bans.of('user', '@alice:home.org')).toBeUndefined()
    expect(bans.of('server', 'evil.example')).toBeDefined()
    expect(bans.of('server', 'sub.evil.example')).toBeUndefined()
    expect(bans.of('room', 'evil.example')).toBeUndefined()
  })

  test('count so many globs and no more', () => {
    const rules = Array.from({ length: 5 }, (_, n) => user(`@bot${n}*:*`))
    const bans = compileBans(rules, { globs: 3, steps: 10_000 })
    expect(bans.left).toBe(2)
    expect([bans.of('user', '@bot2x:a.b'), bans.of('user', '@bot3x:a.b')].map((rule) => rule?.glob)).toEqual([
      '@bot2*:*',
      undefined,
    ])
  })

  test.each([
    [user('*'), true],
    [user('@*:*'), true],
    [user('@*:home.org'), true],
    [user('@*'), true],
    [server('*'), true],
    [server('*.org'), true],
    [server('home.org'), true],
    [room('!*'), true],
    [room(`!${'?'.repeat(43)}`), true],
    [room('!*:*'), true],
    [room('!spam*'), false],
    [user('@????????*'), true],
    [user('@spam*:*'), false],
    [user('@*:evil.example'), false],
    [server('*.evil.example'), false],
  ])('%o reaches too far: %s', (rule, isWide) => {
    expect(isHeld(rule)).toBe(isWide)
  })

  test('that ban everybody only together reach too far too', () => {
    const letters = [...'abcdefghijklmnopqrstuvwxyz0123456789']
    expect(isHeld(...letters.map((letter) => user(`@${letter}*`)))).toBe(true)
    expect(isHeld(...letters.map((letter) => user(`@${letter}*:home.org`)))).toBe(true)
    expect(isHeld(...letters.map((letter) => server(`${letter}*`)))).toBe(true)
    expect(isHeld(...letters.slice(0, 5).map((letter) => user(`@${letter}*`)))).toBe(false)
    expect(isHeld(...letters.map((letter) => user(`@${letter}*:evil.example`)))).toBe(false)
  })

  test('about a server are about all its ports, and no other port saves this server from a rule', () => {
    const bans = compileBans([server('evil.example'), server('[2001:db8::1]'), server('one.example:8449')], ROOMY)
    expect(bans.of('server', 'evil.example:8449')?.glob).toBe('evil.example')
    expect(bans.of('server', 'EVIL.example')?.glob).toBe('evil.example')
    expect(bans.of('server', '[2001:db8::1]:1')?.glob).toBe('[2001:db8::1]')
    expect(bans.of('server', 'one.example')).toBeUndefined()
    expect(bans.of('server', 'one.example:8450')).toBeUndefined()
    expect(overreachingRule([server('home.org')], 'home.org:8448', 100)).toBeDefined()
  })

  test('that take too long to compare do not count', () => {
    const slow = Array.from({ length: 500 }, (_, n) => user(`@${`${'?'.repeat(120)}*`.repeat(4)}${n}`))
    const bans = compileBans([user('@bot*:*'), ...slow], { globs: 2_000, steps: 20_000 })
    expect(bans.left).toBeGreaterThan(400)
    expect(bans.of('user', '@bot7:a.b')?.glob).toBe('@bot*:*')
    const begun = performance.now()
    expect(bans.of('user', `@${'x'.repeat(240)}:a.b`)).toBeUndefined()
    expect(performance.now() - begun).toBeLessThan(1_000)
  })
})
