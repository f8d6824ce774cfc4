import { expect, it } from 'vitest'
import { type PasswordPolicy, weaknessOf } from '../../src/core/password-policy.ts'

const NONE: PasswordPolicy = {
  min_length: 8,
  require_lowercase: false,
  require_uppercase: false,
  require_digit: false,
  require_symbol: false,
}
/** What seed 2 has clients ask for (Authentication 6). */
const ALL: PasswordPolicy = {
  min_length: 8,
  require_lowercase: true,
  require_uppercase: true,
  require_digit: true,
  require_symbol: true,
}

const cases: [password: string, policy: PasswordPolicy, lacks: string | undefined][] = [
  ['seven77', NONE, 'at least 8'],
  ['eight888', NONE, undefined],
  ['🔥🔥🔥🔥', NONE, 'at least 8'],
  ['🔥🔥🔥🔥🔥🔥🔥🔥', NONE, undefined],
  ['Passw0rd!', ALL, undefined],
  ['passw0rd!', ALL, 'capital'],
  ['PASSW0RD!', ALL, 'lower-case'],
  ['Password!', ALL, 'digit'],
  ['Passw0rdd', ALL, 'symbol'],
  ['Пароль0 ж', ALL, undefined],
]
it.each(cases)('%s', (password, policy, lacks) => {
  const weakness = weaknessOf(password, policy)
  if (lacks === undefined) expect(weakness).toBeUndefined()
  else expect(weakness).toContain(lacks)
})
