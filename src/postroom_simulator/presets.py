"""Scenarios that are ready to use."""

from postroom_simulator.scenario import Destination, Scenario, TenantGroup

USUAL = {"default": Destination(median=0.8, p95=2.5)}

PRESETS: dict[str, Scenario] = {
    # A big customer sends a newsletter just when ten small ones have something to say.
    "flood": Scenario(
        name="flood",
        slots=20,
        tenants=(
            TenantGroup(name="flood", burst=10_000),
            TenantGroup(name="small", tenants=10, users=10, burst=10),
        ),
        destinations=USUAL,
    ),
    # One pass over the domains, smallest first, never reaches the largest.
    "many-small": Scenario(
        name="many-small",
        slots=100,
        lasts=600,
        tenants=(
            TenantGroup(name="one mail", tenants=150, burst=1, every=2),
            TenantGroup(name="big", burst=500, every=60),
        ),
        destinations=USUAL,
    ),
    # Mail to a destination that answers after a minute would fill all slots.
    "slow-destination": Scenario(
        name="slow-destination",
        slots=100,
        lasts=900,
        tenants=(
            TenantGroup(name="slow", rate=5, destination="slow"),
            TenantGroup(name="fast", tenants=10, rate=3),
        ),
        destinations={**USUAL, "slow": Destination(median=60)},
    ),
    # Tenants come and go while two stay busy: coming back gives neither credit nor debt.
    "newcomers": Scenario(
        name="newcomers",
        slots=20,
        lasts=900,
        tenants=(
            TenantGroup(name="steady", tenants=2, rate=12),
            TenantGroup(name="comes and goes", tenants=20, burst=20, every=120, starts=30),
            TenantGroup(name="newcomer", tenants=5, rate=1, starts=300, ends=600),
        ),
        destinations=USUAL,
    ),
}
