import type { Config } from '../../config/schema.ts'

/** Whether the identity service is part of what this server does. */
export function isIdentityServed({ roles, identity }: Pick<Config, 'roles' | 'identity'>): boolean {
  return roles.includes('identity') && identity.enabled
}
