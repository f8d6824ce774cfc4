import { describe, expect, test } from 'vitest'
import { compileBans, overreachingRule, readBan } from '../../../src/core/event/policy-rules.ts'

const ban = (type: string, entity: unknown, recommendation: unknown = 'm.ban') =>
  readBan(type, { entity, recommendation, reason: 'spam' } as never)
const user = (glob: string) => ban('m.policy.rule.user', glob)!
const server = (glob: string) => ban('m.policy.rule.server', glob)!

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
    const bans = compileBans([user('@spam*:*.example'), user('@Troll:home.org'), server('evil.example')], 10)
    expect(bans.of('user', '@spam7:bad.example')?.glob).toBe('@spam*:*.example')
    expect(bans.of('user', '@troll:home.org')?.glob).toBe('@Troll:home.org')
    expect(bans.of('user', '@alice:home.org')).toBeUndefined()
    expect(bans.of('server', 'evil.example')).toBeDefined()
    expect(bans.of('server', 'sub.evil.example')).toBeUndefined()
    expect(bans.of('room', 'evil.example')).toBeUndefined()
  })

  test('count so many globs and no more', () => {
    const rules = Array.from({ length: 5 }, (_, n) => user(`@bot${n}*:*`))
    const bans = compileBans(rules, 3)
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
    [ban('m.policy.rule.room', '!*')!, true],
    [user('@spam*:*'), false],
    [user('@*:evil.example'), false],
    [server('*.evil.example'), false],
  ])('%o reaches too far: %s', (rule, isWide) => {
    expect(overreachingRule([rule], 'home.org') !== undefined).toBe(isWide)
  })
})
