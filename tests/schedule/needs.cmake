# Plans are executed with layers that tests follow, on both backends.
add_dependencies(test_schedule tandem_probe tandem_backend_cpu tandem_backend_sim)
