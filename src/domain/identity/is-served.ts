import type { Config } from '../../config/schema.ts'

/** Whether the identity service is part of what this server does. */
export function isIdentityServed({ roles }: Pick<Config, 'roles'>): boolean {
  return roles.includes('identity')
}
