#include "config.h"

#include "sensors/sensor.h"

#include <string.h>

const sensor_kind *const sensor_kinds[] = {
    &cpu_sensor,       &load_sensor,       &memory_sensor,     &swap_sensor,        &vm_sensor,
    &disk_sensor,      &filesystem_sensor, &network_sensor,    &tcp_sensor,         &interrupts_sensor,
    &processes_sensor, &pressure_sensor,   &clock_sensor,      &connections_sensor, &ping_sensor,
    &path_sensor,      &server_sensor,     &prometheus_sensor, &collectd_sensor,    NULL,
};

const sensor_kind *sensor_kind_find(const char *name)
{
    for (size_t i = 0; sensor_kinds[i] != NULL; i++)
        if (strcmp(sensor_kinds[i]->name, name) == 0)
            return sensor_kinds[i];
    return NULL;
}
