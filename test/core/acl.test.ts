import { describe, expect, it } from 'vitest'
import { compileServerAcl } from '../../src/core/acl.ts'
import { cpuMs } from '../support/slowness.ts'

describe('server ACLs (m.room.server_acl)', () => {
  it('without the event every server may come', () => {
    expect(compileServerAcl(undefined).allows('evil.example')).toBe(true)
  })

  const acl = compileServerAcl({
    allow_ip_literals: false,
    allow: ['*'],
    deny: ['evil.example', '*.evil.example', 'BAD?.example', 7],
  })
  it.each([
    ['good.example', true],
    ['evil.example', false],
    ['EVIL.example', false],
    ['evil.example:8448', false],
    ['evil.example:1234', false],
    ['very.evil.example', false],
    ['notevil.example', true],
    ['bad1.example', false],
    ['bad12.example', true],
    ['1.2.3.4', false],
    ['1.2.3.4:8448', false],
    ['[::1]', false],
    ['[2001:db8::1]:8448', false],
    ['not a name', false],
  ])('%s: %s', (server, allowed) => {
    expect(acl.allows(server)).toBe(allowed)
    expect(acl.allows(server)).toBe(allowed)
  })

  it.each([
    ['no allow list', {}],
    ['an allow list that is none', { allow: '*' }],
    ['deny wins', { allow: ['*'], deny: ['*'] }],
  ])('%s shuts everyone out', (_name, content) => {
    expect(compileServerAcl(content).allows('good.example')).toBe(false)
  })

  it('IP literals may come unless the flag is false itself', () => {
    expect(compileServerAcl({ allow: ['*'], allow_ip_literals: 'false' }).allows('1.2.3.4')).toBe(true)
    expect(compileServerAcl({ allow: ['1.2.3.4'] }).allows('1.2.3.4:99')).toBe(true)
  })

  it('64 KiB of globs take under 10 ms a server', () => {
    const deny = Array.from({ length: 6000 }, (_, index) => `*a*${index}*`)
    const acl = compileServerAcl({ allow: ['*'], deny })
    const servers = Array.from({ length: 25 }, (_, index) => `${'a'.repeat(60)}.`.repeat(3) + 'x'.repeat(index))
    expect(Math.min(...servers.map((server) => cpuMs(() => acl.allows(server))))).toBeLessThan(10)
  })
})
