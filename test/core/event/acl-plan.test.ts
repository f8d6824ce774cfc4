import { describe, expect, test } from 'vitest'
import { planAcl } from '../../../src/core/event/acl-plan.ts'
import type { JsonObject } from '../../../src/core/json.ts'

const plan = (content: JsonObject | undefined, wanted: string[], earlier: string[] = [], maxBytes = 10_000) =>
  planAcl(content, wanted, earlier, { own: 'home.example:8448', maxBytes })

describe('the next server ACL of a room', () => {
  test('lets everybody else in, where there was none', () => {
    expect(plan(undefined, ['a.example', 'a.example', '*.b.example'])).toEqual({
      content: { allow: ['*'], allow_ip_literals: true, deny: ['a.example', '*.b.example'] },
      added: ['a.example', '*.b.example'],
    })
    expect(plan(undefined, [])).toBeUndefined()
  })

  test('keeps what people wrote, and takes out what lists added and ban no more', () => {
    const before = { allow: ['*'], deny: ['people.example', 'old.example', 'both.example'], other: 1 }
    const next = plan(before, ['new.example', 'both.example'], ['old.example'])
    expect(next?.content).toEqual({ ...before, deny: ['people.example', 'both.example', 'new.example'] })
    // What a person had banned before is not the lists' to take out.
    expect(next?.added).toEqual(['new.example'])
  })

  test('stays where nothing changes, in whatever order', () => {
    const before = { allow: ['*'], deny: ['b.example', 'people.example', 'a.example'] }
    expect(plan(before, ['a.example', 'b.example'], ['a.example', 'b.example'])).toBeUndefined()
  })

  test.each(['home.example', '*.example', 'HOME.*', 'home?example', '*'])(
    'never keeps this server out (%s)',
    (glob) => {
      expect(plan(undefined, [glob, 'a.test'])?.content.deny).toEqual(['a.test'])
      expect(plan(undefined, [glob])).toBeUndefined()
    },
  )

  test.each([
    { allow: [], deny: [] },
    { deny: [] },
    { allow: ['*'], deny: 'nonsense' },
    { allow: ['*'], deny: ['home.example'] },
  ])('is left to people where it is like %j', (before) => {
    expect(plan(before, ['a.test'])).toBeUndefined()
  })

  test('holds what fits, the first ones', () => {
    const wanted = Array.from({ length: 1_000 }, (_, index) => `server${index}.test`)
    const next = plan(undefined, wanted, [], 1_000)
    expect(next?.added).toEqual(wanted.slice(0, next!.added.length))
    expect(next!.added.length).toBeGreaterThan(10)
    expect(Buffer.byteLength(JSON.stringify(next!.content))).toBeLessThanOrEqual(1_000)
  })
})
